"""The values of one column of a type, in the order of numbers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.execution.exact import flat, numpy_of, plain
from omnigraph.execution.source import Numbers
from omnigraph.execution.topology.growing import GrowingArray
from omnigraph.execution.topology.memory import DERIVED, Parts
from omnigraph.execution.topology.piece import Piece, arrays_of_texts, texts_of_arrays
from omnigraph.execution.topology.text_index import ABSENT, text_index
from omnigraph.execution.topology.texts import (
    ChainedIndex,
    chained_index,
    grown_index,
    is_long,
    text_ranks,
    texts_of,
    widened,
)

Codes: TypeAlias = npt.NDArray[np.int32]
Mask: TypeAlias = npt.NDArray[np.bool_]

# An array of all codes is searched so often before it is worth to list the entities of each.
SEARCHES_MIN: Final = 8
# The codes of so many texts that were asked for lately are at hand.
_CODES_MAX: Final = 64


class Postings(NamedTuple):
    """The entities of each code: those of code `c` are `numbers[offsets[c]:offsets[c + 1]]`."""

    offsets: npt.NDArray[np.int64]
    numbers: Numbers

    @property
    def nbytes(self) -> int:
        """How much memory they take."""
        return self.offsets.nbytes + self.numbers.nbytes

    def of(self, code: int) -> Numbers:
        """The entities of one code, ascending."""
        return self.numbers[self.offsets[code] : self.offsets[code + 1]]


class DenseColumn(ABC):
    """A column in the order of numbers; what numbers without an entity have does not matter."""

    def __init__(self, kind: pa.DataType, *, parts: Parts, name: str) -> None:
        self.kind = kind
        self._parts = parts
        self._name = name

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """How much memory it takes, without what is derived from it."""

    @property
    @abstractmethod
    def nulls(self) -> Mask | None:
        """Where the value is null; None if it is nowhere."""

    @abstractmethod
    def take(self, at: Numbers) -> pa.Array:
        """The values of some entities."""

    @abstractmethod
    def all(self) -> pa.Array:
        """The values of every number."""

    @abstractmethod
    def extended(self, new: pa.Array, at: Numbers, *, size: int, parts: Parts) -> DenseColumn:
        """The column of `size` numbers, some of which have new values."""

    def to_piece(self) -> Piece | None:
        """The column as arrays; None if it is not worth a file."""
        return None


class NumberColumn(DenseColumn):
    """Numbers, Booleans, dates and times: `numbers` has zero where the value is null."""

    def __init__(
        self,
        numbers: GrowingArray,
        nulls: Mask | None,
        *,
        kind: pa.DataType,
        parts: Parts,
        name: str,
    ) -> None:
        super().__init__(kind, parts=parts, name=name)
        self.numbers: npt.NDArray[Any] = numbers.values  # Any: of the type of the column
        self._growing = numbers
        self._nulls = nulls

    @property
    def nbytes(self) -> int:
        """How much memory it takes."""
        return self.numbers.nbytes + (0 if self._nulls is None else self._nulls.nbytes)

    @property
    def nulls(self) -> Mask | None:
        """Where the value is null."""
        return self._nulls

    def take(self, at: Numbers) -> pa.Array:
        """The values of some entities."""
        nulls = None if self._nulls is None else self._nulls.take(at)
        return self._arrow(self.numbers.take(at), nulls)

    def all(self) -> pa.Array:
        """The values of every number."""
        return self._whole

    def extended(self, new: pa.Array, at: Numbers, *, size: int, parts: Parts) -> NumberColumn:
        """The column with new values."""
        count = len(self.numbers)
        values = numpy_of(plain(new)).astype(self.numbers.dtype, copy=False)
        is_more = at >= count
        more = np.zeros(size - count, self.numbers.dtype)
        more[at[is_more] - count] = values[is_more]
        growing = self._growing
        if not is_more.all():
            growing = GrowingArray(self.numbers.copy())
            growing.values[at[~is_more]] = values[~is_more]
        growing = growing.appended(more)
        nulls = self._nulls
        if nulls is not None or new.null_count:
            nulls = _grown(np.zeros(0, np.bool_) if nulls is None else nulls, size)
            nulls[at] = numpy_of(new.is_null())
        return NumberColumn(growing, nulls, kind=self.kind, parts=parts, name=self._name)

    def to_piece(self) -> Piece:
        """The column as arrays."""
        nulls = {} if self._nulls is None else {"nulls": self._nulls}
        return Piece({"numbers": self.numbers, **nulls})

    @cached_property
    def _whole(self) -> pa.Array:
        return self._arrow(self.numbers, self._nulls)

    def _arrow(self, numbers: npt.NDArray[Any], nulls: Mask | None) -> pa.Array:
        found = pa.array(numbers, mask=nulls)
        # Dates and times are the integers they are stored as.
        return found if found.type == self.kind else found.view(self.kind)


class TextColumn(DenseColumn):
    """Texts as codes: places in a dictionary of distinct texts, -1 for null.

    The dictionary may have texts that no entity has any more.
    """

    def __init__(
        self, codes: Codes, dictionary: pa.Array, *, kind: pa.DataType, parts: Parts, name: str
    ) -> None:
        super().__init__(kind, parts=parts, name=name)
        self.codes = codes
        self.dictionary = dictionary
        # What is derived belongs to these very codes: read again, the same texts may have others.
        self._derived = f"{name}{DERIVED}{next(parts.memory.ticks)}"
        self._searches = 0
        self._code_of: dict[str, int] = {}

    @property
    def nbytes(self) -> int:
        """How much memory it takes, without what is derived from it."""
        return int(self.codes.nbytes + self.dictionary.nbytes)

    @cached_property
    def nulls(self) -> Mask | None:
        """Where the text is null."""
        found = self.codes < 0
        return found if found.any() else None

    def take(self, at: Numbers) -> pa.Array:
        """The texts of some entities."""
        return self._texts(self.codes.take(at))

    def all(self) -> pa.Array:
        """The texts of every number: as much memory as all texts take."""
        return self._texts(self.codes)

    def code_of(self, text: str) -> int:
        """The code of a text; -1 if no entity ever had it."""
        code = self._code_of.get(text)
        if code is None:
            code = self._index.find_one(text)
            if code >= 0:
                if len(self._code_of) >= _CODES_MAX:
                    self._code_of.clear()
                self._code_of[text] = code
        return code

    def codes_of(self, texts: pa.Array) -> Codes:
        """The codes of texts; -1 for those that no entity ever had."""
        return self._index.find(texts)

    def extended(self, new: pa.Array, at: Numbers, *, size: int, parts: Parts) -> TextColumn:
        """The column with new texts, some of which may be new to the dictionary."""
        encoded = new.dictionary_encode()
        codes = self.codes_of(encoded.dictionary)
        is_new = codes < 0
        codes[is_new] = np.arange(np.count_nonzero(is_new), dtype=np.int32) + len(self.dictionary)
        dictionary = self.dictionary
        if is_new.any():
            added = encoded.dictionary.filter(pa.array(is_new)).cast(dictionary.type)
            dictionary = pa.concat_arrays([dictionary, added])
        # The code of null is the last one of these.
        codes = np.append(codes, np.int32(ABSENT))
        all_codes = _grown(self.codes, size)
        all_codes[at] = codes.take(encoded.indices.fill_null(len(codes) - 1).to_numpy())
        found = TextColumn(all_codes, dictionary, kind=self.kind, parts=parts, name=self._name)
        found.inherit_index(self._index)
        return found

    def to_piece(self) -> Piece:
        """The column as arrays."""
        return Piece({"codes": self.codes, **arrays_of_texts(self.dictionary)})

    def inherit_index(self, index: ChainedIndex) -> None:
        """Look texts up in the index of a shorter dictionary, and in one of the others."""
        count, base = len(self.dictionary), len(index.base.texts)
        if len(index) < count:
            grow = grown_index if is_long(count - base, base) else chained_index
            at = np.arange(count, dtype=np.int32)
            index = grow(texts_of(self.dictionary), at, index.base)
        self._parts.keep(f"{self._derived}:index", index)

    @property
    def code_ranks(self) -> Codes:
        """Numbers that compare as the texts of the dictionary do."""
        return self._parts.get(f"{self._derived}:code_ranks", lambda: text_ranks(self.dictionary))

    @property
    def postings(self) -> Postings:
        """The entities of each text."""
        return self._parts.get(
            f"{self._derived}:postings", lambda: _postings(self.codes, len(self.dictionary))
        )

    def having(self, code: int) -> Numbers:
        """The numbers with a code, ascending."""
        self._searches += 1
        if self._searches > SEARCHES_MIN:
            return self.postings.of(code)
        return np.flatnonzero(self.codes == code).astype(np.int32)

    @property
    def _index(self) -> ChainedIndex:
        return self._parts.get(
            f"{self._derived}:index", lambda: ChainedIndex(text_index(self.dictionary))
        )

    def _texts(self, codes: Codes) -> pa.Array:
        is_null = codes < 0
        indices = pa.array(codes, mask=is_null) if is_null.any() else pa.array(codes)
        found = self.dictionary.take(indices)
        return found if found.type == self.kind else found.cast(self.kind)


class OtherColumn(DenseColumn):
    """Lists and vectors, as Arrow keeps them."""

    def __init__(self, values: pa.Array, *, parts: Parts, name: str) -> None:
        super().__init__(values.type, parts=parts, name=name)
        self.values = values

    @property
    def nbytes(self) -> int:
        """How much memory it takes."""
        return int(self.values.nbytes)

    @cached_property
    def nulls(self) -> Mask | None:
        """Where the value is null."""
        return numpy_of(self.values.is_null()) if self.values.null_count else None

    def take(self, at: Numbers) -> pa.Array:
        """The values of some entities."""
        return self.values.take(pa.array(at))

    def extended(self, new: pa.Array, at: Numbers, *, size: int, parts: Parts) -> OtherColumn:
        """The column with new values."""
        places = np.full(size, -1, np.int64)
        places[: len(self.values)] = np.arange(len(self.values))
        places[at] = np.arange(len(new)) + len(self.values)
        values = pa.concat_arrays([self.values, new]).take(pa.array(places, mask=places < 0))
        return OtherColumn(values, parts=parts, name=self._name)

    def all(self) -> pa.Array:
        """The values of every number."""
        return self.values


def dense_column(values: pa.Array | pa.ChunkedArray, *, parts: Parts, name: str) -> DenseColumn:
    """The column of values that are in the order of numbers."""
    kind = values.type
    if pa.types.is_string(kind):
        encoded = flat(widened(values).dictionary_encode())
        codes = encoded.indices.fill_null(ABSENT).to_numpy().astype(np.int32, copy=False)
        return TextColumn(codes, encoded.dictionary, kind=kind, parts=parts, name=name)
    if pa.types.is_nested(kind):
        return OtherColumn(flat(values), parts=parts, name=name)
    nulls = numpy_of(values.is_null()) if values.null_count else None
    numbers = GrowingArray(numpy_of(plain(values)))
    return NumberColumn(numbers, nulls, kind=kind, parts=parts, name=name)


def column_from(piece: Piece, kind: pa.DataType, *, parts: Parts, name: str) -> DenseColumn:
    """The column in a piece."""
    arrays = piece.arrays
    if "codes" in arrays:
        dictionary = texts_of_arrays(arrays)
        return TextColumn(arrays["codes"], dictionary, kind=kind, parts=parts, name=name)
    numbers, nulls = GrowingArray(arrays["numbers"]), arrays.get("nulls")
    return NumberColumn(numbers, nulls, kind=kind, parts=parts, name=name)


def _grown(values: npt.NDArray[Any], size: int) -> npt.NDArray[Any]:
    grown = np.zeros(size, values.dtype)
    grown[: len(values)] = values
    return grown


def _postings(codes: Codes, count: int) -> Postings:
    offsets = np.zeros(count + 1, np.int64)
    known = np.flatnonzero(codes >= 0)
    np.cumsum(np.bincount(codes[known], minlength=count), out=offsets[1:])
    # Codes and numbers in one integer: sorting those is much faster than an order of codes.
    packed = (codes[known].astype(np.int64) << 32) | known
    packed.sort()
    return Postings(offsets, (packed & 0xFFFFFFFF).astype(np.int32))
