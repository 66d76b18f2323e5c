"""A piece of a topology as named arrays, which is what a file holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Arrays: TypeAlias = Mapping[str, npt.NDArray[Any]]  # Any: of numbers of any kind


@dataclass(frozen=True, slots=True)
class CacheBlock:
    """Arrays, and what else there is to say about them, as JSON."""

    arrays: Arrays
    metadata: Mapping[str, Any] = field(default_factory=dict)  # Any: JSON

    @property
    def nbytes(self) -> int:
        """How many bytes the arrays take."""
        return sum(each.nbytes for each in self.arrays.values())


class Cacheable(Protocol):
    """What can be kept in memory, and maybe in a file."""

    @property
    def nbytes(self) -> int:
        """How much memory it takes."""

    def to_block(self) -> CacheBlock | None:
        """The same as arrays; None if it is not worth a file."""


def encode_texts(texts: pa.Array) -> dict[str, npt.NDArray[Any]]:
    """Offsets from zero, the bytes of all texts, and which of them are there, unless all are."""
    width = np.int64 if pa.types.is_large_string(texts.type) else np.int32
    _, offsets_buffer, data_buffer = texts.buffers()
    if offsets_buffer is None or offsets_buffer.size == 0:
        return {"offsets": np.zeros(1, width), "bytes": np.zeros(0, np.uint8)}
    offsets = np.frombuffer(offsets_buffer, width)[texts.offset : texts.offset + len(texts) + 1]
    data = np.zeros(0, np.uint8) if data_buffer is None else np.frombuffer(data_buffer, np.uint8)
    arrays = {"offsets": offsets - offsets[0], "bytes": data[offsets[0] : offsets[-1]]}
    if texts.null_count:
        arrays["valid"] = texts.is_valid().to_numpy(zero_copy_only=False)
    return arrays


def decode_texts(arrays: Arrays) -> pa.Array:
    """The texts of `arrays_of_texts`, which share its memory."""
    offsets = arrays["offsets"]
    kind = pa.large_string() if offsets.dtype == np.int64 else pa.utf8()
    valid = arrays.get("valid")
    bits = None if valid is None else pa.array(valid).buffers()[1]
    buffers = [bits, pa.py_buffer(offsets), pa.py_buffer(arrays["bytes"])]
    return pa.Array.from_buffers(kind, len(offsets) - 1, buffers)
