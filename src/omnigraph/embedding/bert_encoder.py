"""Models of the BERT family on the processor, with the linear algebra of NumPy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy.special import erf

_Array = npt.NDArray[np.float32]
_Tokens = npt.NDArray[np.int64]
# The weight of a place that has no token, before its share is computed.
_NOTHING: Final = np.float32(-1e9)


class BertEncoder:
    """The encoder of a BERT model: embeddings of tokens, then layers of attention."""

    def __init__(self, weights: Mapping[str, _Array], config: Mapping[str, Any]) -> None:
        known = {name.removeprefix("bert."): values for name, values in weights.items()}
        self._weights = {
            name: np.asarray(each, np.float32)
            for name, each in known.items()
            if each.dtype.kind == "f"
        }
        self._layers = int(config["num_hidden_layers"])
        self._heads = int(config["num_attention_heads"])
        self._epsilon = np.float32(config.get("layer_norm_eps", 1e-12))
        # Matrices are stored by output; a product of rows reads them by input.
        self._matrices = {
            name: np.ascontiguousarray(each.T)
            for name, each in self._weights.items()
            if name.startswith("encoder.") and each.ndim == _MATRIX
        }

    def __call__(self, tokens: _Tokens, is_token: _Tokens) -> _Array:
        """The vectors of tokens, by text and place."""
        texts, width = tokens.shape
        words = self._weights["embeddings.word_embeddings.weight"][tokens]
        words += self._weights["embeddings.position_embeddings.weight"][:width]
        words += self._weights["embeddings.token_type_embeddings.weight"][0]
        rows = self._normalize(words.reshape(texts * width, -1), "embeddings.LayerNorm")
        bias = np.where(is_token[:, None, None, :] > 0, np.float32(0), _NOTHING)
        for number in range(self._layers):
            layer = f"encoder.layer.{number}"
            rows = rows + self._compute_attention(rows, bias, f"{layer}.attention")
            rows = self._normalize(rows, f"{layer}.attention.output.LayerNorm")
            inner = _apply_gelu(self._multiply(rows, f"{layer}.intermediate.dense"))
            rows = rows + self._multiply(inner, f"{layer}.output.dense")
            rows = self._normalize(rows, f"{layer}.output.LayerNorm")
        return rows.reshape(texts, width, -1)

    def _compute_attention(self, rows: _Array, bias: _Array, name: str) -> _Array:
        texts, width = bias.shape[0], bias.shape[3]
        size = rows.shape[1] // self._heads
        query, key, value = (
            self._multiply(rows, f"{name}.self.{part}")
            .reshape(texts, width, self._heads, size)
            .transpose(0, 2, 1, 3)
            for part in ("query", "key", "value")
        )
        shares: _Array = query @ key.transpose(0, 1, 3, 2)
        shares *= np.float32(1 / np.sqrt(size))
        shares += bias
        shares -= shares.max(-1, keepdims=True)
        np.exp(shares, out=shares)
        shares /= shares.sum(-1, keepdims=True)
        seen: _Array = (shares @ value).transpose(0, 2, 1, 3).reshape(texts * width, -1)
        return self._multiply(seen, f"{name}.output.dense")

    def _multiply(self, rows: _Array, name: str) -> _Array:
        found: _Array = rows @ self._matrices[f"{name}.weight"]
        found += self._weights[f"{name}.bias"]
        return found

    def _normalize(self, rows: _Array, name: str) -> _Array:
        rows = rows - rows.mean(-1, keepdims=True)
        variance = np.einsum("ij,ij->i", rows, rows)[:, None] / np.float32(rows.shape[1])
        rows /= np.sqrt(variance + self._epsilon)
        rows *= self._weights[f"{name}.weight"]
        rows += self._weights[f"{name}.bias"]
        return rows


_MATRIX = 2


def _apply_gelu(rows: _Array) -> _Array:
    shares = rows * np.float32(np.sqrt(0.5))
    erf(shares, out=shares)
    shares += 1
    shares *= rows
    shares *= np.float32(0.5)
    return shares
