"""Models on this machine, made small: of the BERT family, and as ONNX."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from safetensors.numpy import save_file
from tokenizers import Tokenizer, models, pre_tokenizers

from omnigraph.embedding.bert_encoder import BertEncoder
from omnigraph.embedding.configured_embedder import ConfiguredEmbedder
from omnigraph.embedding.embedder import BatchEmbedder, Task
from omnigraph.embedding.local_embedder import LocalEmbedder
from omnigraph.errors import EmbeddingError

WORDS = {"[UNK]": 0, "sea": 1, "storm": 2, "calm": 3, "query:": 4}
SIZE = 8


def write_tokenizer(folder: Path) -> None:
    tokenizer = Tokenizer(models.WordLevel(WORDS, unk_token=next(iter(WORDS))))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.save(str(folder / "tokenizer.json"))


def bert_weights(layers: int) -> dict[str, Any]:
    source = np.random.default_rng(7)

    def normal(*shape: int) -> Any:
        return source.normal(size=shape).astype(np.float32)

    found = {
        "embeddings.word_embeddings.weight": normal(len(WORDS), SIZE),
        "embeddings.position_embeddings.weight": normal(16, SIZE),
        "embeddings.token_type_embeddings.weight": normal(2, SIZE),
        "embeddings.LayerNorm.weight": normal(SIZE),
        "embeddings.LayerNorm.bias": normal(SIZE),
    }
    for number in range(layers):
        layer = f"encoder.layer.{number}"
        for name, outputs, inputs in (
            ("attention.self.query", SIZE, SIZE),
            ("attention.self.key", SIZE, SIZE),
            ("attention.self.value", SIZE, SIZE),
            ("attention.output.dense", SIZE, SIZE),
            ("intermediate.dense", 2 * SIZE, SIZE),
            ("output.dense", SIZE, 2 * SIZE),
        ):
            found[f"{layer}.{name}.weight"] = normal(outputs, inputs)
            found[f"{layer}.{name}.bias"] = normal(outputs)
        for name in ("attention.output.LayerNorm", "output.LayerNorm"):
            found[f"{layer}.{name}.weight"] = normal(SIZE)
            found[f"{layer}.{name}.bias"] = normal(SIZE)
    return found


CONFIG = {"model_type": "bert", "num_hidden_layers": 2, "num_attention_heads": 2}


@pytest.fixture
def bert_folder(tmp_path: Path) -> Path:
    write_tokenizer(tmp_path)
    save_file(bert_weights(2), str(tmp_path / "model.safetensors"))
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    return tmp_path


def _encode_naively(weights: dict[str, Any], tokens: list[int]) -> Any:
    """One text by the published equations, without batches and without padding."""
    from math import erf  # noqa: PLC0415

    def norm(rows: Any, name: str) -> Any:
        shifted = rows - rows.mean(-1, keepdims=True)
        scaled = shifted / np.sqrt((shifted**2).mean(-1, keepdims=True) + 1e-12)
        return scaled * weights[f"{name}.weight"] + weights[f"{name}.bias"]

    def dense(rows: Any, name: str) -> Any:
        return rows @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]

    rows = weights["embeddings.word_embeddings.weight"][tokens].astype(np.float64)
    rows = rows + weights["embeddings.position_embeddings.weight"][: len(tokens)]
    rows = rows + weights["embeddings.token_type_embeddings.weight"][0]
    rows = norm(rows, "embeddings.LayerNorm")
    for number in range(2):
        layer = f"encoder.layer.{number}"
        heads = []
        for head in (slice(0, 4), slice(4, 8)):
            q, k, v = (
                dense(rows, f"{layer}.attention.self.{part}")[:, head]
                for part in ("query", "key", "value")
            )
            scores = np.exp(q @ k.T / 2.0)
            heads.append(scores / scores.sum(-1, keepdims=True) @ v)
        seen = dense(np.concatenate(heads, 1), f"{layer}.attention.output.dense")
        rows = norm(rows + seen, f"{layer}.attention.output.LayerNorm")
        inner = dense(rows, f"{layer}.intermediate.dense")
        inner = inner * 0.5 * (1 + np.vectorize(erf)(inner / np.sqrt(2)))
        rows = norm(rows + dense(inner, f"{layer}.output.dense"), f"{layer}.output.LayerNorm")
    return rows


def test_the_encoder_computes_the_published_equations() -> None:
    weights = bert_weights(2)
    tokens = [1, 2, 3, 0]
    found = BertEncoder(weights, CONFIG)(np.array([tokens]), np.ones((1, 4), np.int64))
    assert found[0] == pytest.approx(_encode_naively(weights, tokens), abs=1e-4)


def test_texts_of_other_lengths_beside_it_do_not_change_a_vector(bert_folder: Path) -> None:
    embedder = LocalEmbedder(str(bert_folder), "tiny")
    texts = ["sea", "storm calm sea storm sea", "calm storm", "sea"]
    together = embedder.embed_texts(texts, SIZE, Task.DOCUMENT)
    alone = [embedder.embed_texts([each], SIZE, Task.DOCUMENT)[0] for each in texts]
    assert together == pytest.approx(np.array(alone), abs=1e-5)
    assert np.linalg.norm(together, axis=1) == pytest.approx([1.0] * 4, abs=1e-6)
    assert embedder("sea", SIZE) == pytest.approx(together[0].tolist(), abs=1e-5)
    assert embedder.embed_texts([], SIZE, Task.DOCUMENT).shape == (0, SIZE)


def test_another_dimension_is_refused_before_it_is_stored(bert_folder: Path) -> None:
    with pytest.raises(EmbeddingError, match="8 components, not 4") as caught:
        LocalEmbedder(str(bert_folder), "tiny").embed_texts(["sea"], 4, Task.DOCUMENT)
    assert caught.value.reason == "wrong_dimension"


def test_an_onnx_model_runs_and_its_prompt_is_that_of_the_task(tmp_path: Path) -> None:
    write_tokenizer(tmp_path)
    table = np.eye(len(WORDS), dtype=np.float32)
    graph = helper.make_graph(
        [helper.make_node("Gather", ["table", "input_ids"], ["last_hidden_state"])],
        "lookup",
        [helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["b", "t"])],
        [helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["b", "t", 5])],
        [onnx.numpy_helper.from_array(table, "table")],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(made, str(tmp_path / "model.onnx"))
    prompts = {"prompts": {"query": "query: "}}
    (tmp_path / "config_sentence_transformers.json").write_text(json.dumps(prompts))
    embedder = LocalEmbedder(str(tmp_path), "lookup")
    (document,) = embedder.embed_texts(["sea storm"], 5, Task.DOCUMENT)
    assert document.tolist() == pytest.approx([0, 0.7071068, 0.7071068, 0, 0], abs=1e-6)
    query = embedder("sea storm", 5)
    assert query == pytest.approx([0, 0.5773503, 0.5773503, 0, 0.5773503], abs=1e-6)


def test_the_first_token_is_taken_where_the_model_says_so(bert_folder: Path) -> None:
    (bert_folder / "1_Pooling").mkdir()
    (bert_folder / "1_Pooling/config.json").write_text('{"pooling_mode_cls_token": true}')
    found = LocalEmbedder(str(bert_folder), "tiny")("storm sea", SIZE)
    first = _encode_naively(bert_weights(2), [2, 1])[0]
    assert found == pytest.approx((first / np.linalg.norm(first)).tolist(), abs=1e-4)


def test_the_environment_names_a_local_model(bert_folder: Path) -> None:
    environment = {"OMNIGRAPH_EMBED_PROVIDER": "local", "OMNIGRAPH_EMBED_PATH": str(bert_folder)}
    embedder = ConfiguredEmbedder(environment)
    assert isinstance(embedder, BatchEmbedder)
    assert (embedder.kind, embedder.model) == (f"local {bert_folder}", bert_folder.name)
    named = ConfiguredEmbedder({**environment, "OMNIGRAPH_EMBED_MODEL": "m"})
    assert named.model == "m"


def test_a_path_without_a_model_is_refused(tmp_path: Path) -> None:
    for path in (str(tmp_path), "no-such-package-of-models"):
        with pytest.raises(EmbeddingError, match="no local model") as caught:
            LocalEmbedder(path, "m")("sea", 4)
        assert caught.value.reason == "bad_setting"


def test_a_model_of_another_family_is_refused(bert_folder: Path) -> None:
    (bert_folder / "config.json").write_text('{"model_type": "t5"}')
    with pytest.raises(EmbeddingError, match="cannot be run"):
        LocalEmbedder(str(bert_folder), "m")("sea", 4)


def test_a_missing_library_is_named_with_its_extra(
    bert_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(EmbeddingError) as caught:
        LocalEmbedder(str(bert_folder), "m")("sea", 4)
    assert caught.value.hint == "pip install 'omnigraph[embed-local]'"
