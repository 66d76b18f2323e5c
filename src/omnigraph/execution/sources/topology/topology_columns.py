"""The values of one column of a type, in the order of numbers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.execution.sources.graph_source import DenseIds
from omnigraph.execution.sources.topology.append_array import AppendArray, PatchedArray
from omnigraph.execution.sources.topology.cache_files import CacheBlock, decode_texts, encode_texts
from omnigraph.execution.sources.topology.memory_cache import DERIVED, CachePartition
from omnigraph.execution.sources.topology.text_arrays import (
    TAIL_MIN,
    ChainedIndex,
    Ranks,
    TextArray,
    build_ranks,
    grow_index,
    is_long,
    text_array_of,
    widen_texts,
)
from omnigraph.execution.sources.topology.text_index import (
    ABSENT,
    Postings,
    build_postings,
    build_text_index,
)
from omnigraph.rows.comparison import flatten_chunks, to_comparable, to_numpy

Codes: TypeAlias = npt.NDArray[np.int32]
Mask: TypeAlias = npt.NDArray[np.bool_]

# An array of all codes is searched so often before it is worth to list the entities of each.
SEARCHES_MIN: Final = 8
# The codes of so many texts that were asked for lately are at hand.
_CODES_MAX: Final = 64


class DenseColumn(ABC):
    """A column in the order of numbers; what numbers without an entity have does not matter."""

    def __init__(self, kind: pa.DataType, *, parts: CachePartition, name: str) -> None:
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
    def get_nulls(self, at: DenseIds | None) -> Mask | None:
        """Where the values of some entities, or of all, are null; None if they are nowhere."""

    @abstractmethod
    def take(self, at: DenseIds) -> pa.Array:
        """The values of some entities."""

    @abstractmethod
    def take_one(self, number: int) -> pa.Array:
        """The value of one entity, as an array."""

    @abstractmethod
    def take_all(self) -> pa.Array:
        """The values of every number."""

    @abstractmethod
    def extend(
        self, new: pa.Array, at: DenseIds, *, size: int, parts: CachePartition
    ) -> DenseColumn:
        """The column of `size` numbers, some of which have new values."""

    def to_block(self) -> CacheBlock | None:
        """The column as arrays; None if it is not worth a file."""
        return None


class NumberColumn(DenseColumn):
    """Numbers, Booleans, dates and times: `numbers` has zero where the value is null."""

    def __init__(
        self,
        numbers: PatchedArray,
        nulls: PatchedArray | None,
        *,
        kind: pa.DataType,
        parts: CachePartition,
        name: str,
    ) -> None:
        super().__init__(kind, parts=parts, name=name)
        self._numbers = numbers
        self._nulls = nulls

    @property
    def nbytes(self) -> int:
        """How much memory it takes."""
        return self._numbers.nbytes + (0 if self._nulls is None else self._nulls.nbytes)

    @property
    def numbers(self) -> npt.NDArray[Any]:  # Any: of the type of the column
        """The number of every entity."""
        return self._numbers.whole

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the numbers."""
        return self._numbers.dtype

    @property
    def nulls(self) -> Mask | None:
        """Where the value is null."""
        return None if self._nulls is None else self._nulls.whole

    def get_numbers(self, at: DenseIds | None) -> npt.NDArray[Any]:
        """The numbers of some entities, or of all."""
        return self._numbers.whole if at is None else self._numbers.take(at)

    def get_nulls(self, at: DenseIds | None) -> Mask | None:
        """Where the values of some entities are null."""
        if self._nulls is None or at is None:
            return self.nulls
        return self._nulls.take(at)

    def take(self, at: DenseIds) -> pa.Array:
        """The values of some entities."""
        return self._to_arrow(self._numbers.take(at), self.get_nulls(at))

    def take_one(self, number: int) -> pa.Array:
        """The value of one entity."""
        if self._numbers.is_plain and (self._nulls is None or self._nulls.is_plain):
            return self.take_all().slice(number, 1)
        return self.take(np.array([number], np.int32))

    def take_all(self) -> pa.Array:
        """The values of every number."""
        return self._whole

    def extend(
        self, new: pa.Array, at: DenseIds, *, size: int, parts: CachePartition
    ) -> NumberColumn:
        """The column with new values."""
        values = to_numpy(to_comparable(new)).astype(self.dtype, copy=False)
        numbers = self._numbers.patch(at, values, size=size)
        nulls = self._nulls
        if nulls is None and new.null_count:
            nulls = PatchedArray(AppendArray(np.zeros(len(self._numbers), np.bool_)))
        if nulls is not None:
            nulls = nulls.patch(at, to_numpy(new.is_null()), size=size)
        return NumberColumn(numbers, nulls, kind=self.kind, parts=parts, name=self._name)

    def to_block(self) -> CacheBlock:
        """The column as arrays."""
        nulls = {} if self._nulls is None else {"nulls": self._nulls.merge()}
        return CacheBlock({"numbers": self._numbers.merge(), **nulls})

    @cached_property
    def _whole(self) -> pa.Array:
        return self._to_arrow(self.numbers, self.nulls)

    def _to_arrow(self, numbers: npt.NDArray[Any], nulls: Mask | None) -> pa.Array:
        found = pa.array(numbers, mask=nulls)
        # Dates and times are the integers they are stored as.
        return found if found.type == self.kind else found.view(self.kind)


class TextColumn(DenseColumn):
    """Texts as codes: places in a dictionary of distinct texts, -1 for null.

    The dictionary may have texts that no entity has any more.
    """

    def __init__(
        self,
        codes: PatchedArray,
        texts: TextArray,
        *,
        kind: pa.DataType,
        parts: CachePartition,
        name: str,
    ) -> None:
        super().__init__(kind, parts=parts, name=name)
        self._codes = codes
        self.texts = texts
        # What is derived belongs to these very codes: read again, the same texts may have others.
        self._derived = f"{name}{DERIVED}{next(parts.memory.ticks)}"
        self._searches = 0
        self._code_of: dict[str, int] = {}
        # Whether a text is or was null; None if not asked yet.
        self._has_nulls: bool | None = None

    @property
    def nbytes(self) -> int:
        """How much memory it takes, without what is derived from it."""
        return int(self._codes.nbytes + self.texts.nbytes)

    @property
    def codes(self) -> Codes:
        """The code of every entity."""
        return self._codes.whole

    @property
    def dictionary(self) -> pa.Array:
        """The text of every code."""
        return self.texts.whole

    @property
    def nulls(self) -> Mask | None:
        """Where the text is null."""
        return self.get_nulls(None)

    def get_nulls(self, at: DenseIds | None) -> Mask | None:
        """Where the texts of some entities, or of all, are null."""
        if self._has_nulls is None:
            self._has_nulls = bool(np.any(self.codes < 0))
        found: Mask | None = self.get_codes(at) < 0 if self._has_nulls else None
        return found

    def get_codes(self, at: DenseIds | None) -> Codes:
        """The codes of some entities, or of all."""
        return self._codes.whole if at is None else self._codes.take(at)

    def take(self, at: DenseIds) -> pa.Array:
        """The texts of some entities."""
        return self._texts_of(self._codes.take(at))

    def take_one(self, number: int) -> pa.Array:
        """The text of one entity."""
        code = int(self._codes.take_one(number))
        if code < 0 or self.texts.base.type != self.kind:
            return self.take(np.array([number], np.int32))
        return self.texts.take_one(code)

    def take_all(self) -> pa.Array:
        """The texts of every number: as much memory as all texts take."""
        return self._texts_of(self.codes)

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

    def extend(
        self, new: pa.Array, at: DenseIds, *, size: int, parts: CachePartition
    ) -> TextColumn:
        """The column with new texts, some of which may be new to the dictionary."""
        encoded = new.dictionary_encode()
        codes = self.codes_of(encoded.dictionary)
        is_new = codes < 0
        count = int(np.count_nonzero(is_new))
        texts = self.texts
        if count:
            codes[is_new] = np.arange(count, dtype=np.int32) + len(texts)
            texts = texts.extend(encoded.dictionary.filter(pa.array(is_new)))
        # The code of null is the last one of these.
        codes = np.append(codes, np.int32(ABSENT))
        values = codes.take(encoded.indices.fill_null(len(codes) - 1).to_numpy())
        all_codes = self._codes.patch(at, values, size=size)
        found = TextColumn(all_codes, texts, kind=self.kind, parts=parts, name=self._name)
        if self._has_nulls is not None:
            found._has_nulls = self._has_nulls or new.null_count > 0
        found.inherit(self)
        return found

    def to_block(self) -> CacheBlock:
        """The column as arrays."""
        return CacheBlock({"codes": self._codes.merge(), **encode_texts(self.texts.concatenate())})

    def inherit(self, older: TextColumn) -> None:
        """Have what is derived from an older column, for more texts and other codes."""
        index, count = older._index, len(self.texts)
        if len(index) < count:
            new = self.texts.take_after(len(index))
            longer = None if len(new) > TAIL_MIN else index.extend(new)
            if longer is None or longer.is_long:
                at = np.arange(count, dtype=np.int32)
                longer = grow_index(self.texts, at, index.base)
            index = longer
        self._parts.keep(f"{self._derived}:index", index)
        ranks_: Ranks | None = older._peek("ranks")
        if ranks_ is not None:
            self._parts.keep(f"{self._derived}:ranks", ranks_.extend(self.texts))
        postings: Postings | None = older._peek("postings")
        if postings is not None and self._codes.root is older._codes.root:
            self._parts.keep(f"{self._derived}:postings", postings)
            self._searches = SEARCHES_MIN

    def _peek(self, name: str) -> Any:  # Any: what is derived under the name
        return self._parts.peek(f"{self._derived}:{name}")

    @property
    def code_ranks(self) -> Codes:
        """The places of the texts of the dictionary in their order."""
        return self._ranks.settle().base.ranks

    def ranks_of(self, codes: Codes) -> npt.NDArray[np.int64]:
        """Numbers that compare as the texts of codes do; that of null is the least."""
        if not len(self.texts):
            return np.full(len(codes), -1, np.int64)
        found = self._ranks.take(codes)
        found[codes < 0] = -1
        return found

    @property
    def _ranks(self) -> Ranks:
        return self._parts.get(f"{self._derived}:ranks", lambda: build_ranks(self.texts))

    def find_entities(self, code: int) -> DenseIds:
        """The numbers with a code, ascending."""
        self._searches += 1
        if self._searches <= SEARCHES_MIN:
            return np.flatnonzero(self.codes == code).astype(np.int32)
        raw = self._codes.growing.values
        postings = self._parts.get(
            f"{self._derived}:postings", lambda: build_postings(raw, len(self.texts))
        )
        found = postings.get_entities(code)
        if len(raw) > postings.size:
            more = np.flatnonzero(raw[postings.size :] == code) + postings.size
            found = np.concatenate([found, more.astype(np.int32)])
        replaced = self._codes.at
        if len(replaced):
            found = np.setdiff1d(found, replaced, assume_unique=True)
            found = np.union1d(found, replaced[self._codes.new == code]).astype(np.int32)
        return found

    @property
    def _index(self) -> ChainedIndex:
        return self._parts.get(
            f"{self._derived}:index", lambda: ChainedIndex(build_text_index(self.dictionary))
        )

    def _texts_of(self, codes: Codes) -> pa.Array:
        is_null = codes < 0
        if is_null.any():
            known = self.texts.take(codes[~is_null])
            found = known.take(pa.array(np.cumsum(~is_null) - 1, mask=is_null))
        else:
            found = self.texts.take(codes)
        return found if found.type == self.kind else found.cast(self.kind)


class ArrowColumn(DenseColumn):
    """Lists and vectors, as Arrow keeps them: the first values, and those that came later."""

    def __init__(
        self,
        base: pa.Array,
        tail: pa.Array,
        places: PatchedArray,
        *,
        parts: CachePartition,
        name: str,
    ) -> None:
        super().__init__(base.type, parts=parts, name=name)
        self._base = base
        self._tail = tail
        # Where the value of each number is: in the first array, or after it in the other.
        self._places = places

    @property
    def nbytes(self) -> int:
        """How much memory it takes."""
        return int(self._base.nbytes + self._tail.nbytes + self._places.nbytes)

    @property
    def nulls(self) -> Mask | None:
        """Where the value is null."""
        return self.get_nulls(None)

    def get_nulls(self, at: DenseIds | None) -> Mask | None:
        """Where the values of some entities, or of all, are null."""
        if not self._base.null_count and not self._tail.null_count:
            return None
        return to_numpy((self.values if at is None else self.take(at)).is_null())

    @cached_property
    def values(self) -> pa.Array:
        """The values of every number."""
        if not len(self._tail) and self._places.is_plain:
            return self._base
        return pa.concat_arrays([self._base, self._tail]).take(pa.array(self._places.merge()))

    def take(self, at: DenseIds) -> pa.Array:
        """The values of some entities."""
        if not len(self._tail):
            return self._base.take(pa.array(at))
        places, count = self._places.take(at), len(self._base)
        is_tail = places >= count
        if not is_tail.any():
            return self._base.take(pa.array(places))
        first = self._base.take(pa.array(places[~is_tail]))
        second = self._tail.take(pa.array(places[is_tail] - count))
        order = np.empty(len(at), np.int64)
        order[np.flatnonzero(~is_tail)] = np.arange(len(first))
        order[np.flatnonzero(is_tail)] = np.arange(len(first), len(at))
        return pa.concat_arrays([first, second]).take(pa.array(order))

    def take_one(self, number: int) -> pa.Array:
        """The value of one entity."""
        return self.take(np.array([number], np.int32))

    def extend(
        self, new: pa.Array, at: DenseIds, *, size: int, parts: CachePartition
    ) -> ArrowColumn:
        """The column with new values."""
        # Unused numbers get any value: the one after all others.
        tail = pa.concat_arrays([self._tail, new])
        places = np.arange(len(new), dtype=np.int64) + len(self._base) + len(self._tail)
        all_places = self._places.patch(at, places, size=size)
        found = ArrowColumn(self._base, tail, all_places, parts=parts, name=self._name)
        if not is_long(len(tail), len(self._base)):
            return found
        return build_arrow_column(found.values, parts=parts, name=self._name)

    def take_all(self) -> pa.Array:
        """The values of every number."""
        return self.values


def build_arrow_column(values: pa.Array, *, parts: CachePartition, name: str) -> ArrowColumn:
    """The column of values that are all in one array."""
    places = PatchedArray(AppendArray(np.arange(len(values), dtype=np.int64)))
    return ArrowColumn(values, values.slice(0, 0), places, parts=parts, name=name)


def build_column(
    values: pa.Array | pa.ChunkedArray, *, parts: CachePartition, name: str
) -> DenseColumn:
    """The column of values that are in the order of numbers."""
    kind = values.type
    if pa.types.is_string(kind):
        encoded = flatten_chunks(widen_texts(values).dictionary_encode())
        codes = encoded.indices.fill_null(ABSENT).to_numpy().astype(np.int32, copy=False)
        texts = text_array_of(encoded.dictionary)
        return TextColumn(_make_patched(codes), texts, kind=kind, parts=parts, name=name)
    if pa.types.is_nested(kind):
        return build_arrow_column(flatten_chunks(values), parts=parts, name=name)
    nulls = _make_patched(to_numpy(values.is_null())) if values.null_count else None
    numbers = _make_patched(to_numpy(to_comparable(values)))
    return NumberColumn(numbers, nulls, kind=kind, parts=parts, name=name)


def decode_column(
    piece: CacheBlock, kind: pa.DataType, *, parts: CachePartition, name: str
) -> DenseColumn:
    """The column in a piece."""
    arrays = piece.arrays
    if "codes" in arrays:
        texts = text_array_of(decode_texts(arrays))
        return TextColumn(_make_patched(arrays["codes"]), texts, kind=kind, parts=parts, name=name)
    nulls = _make_patched(arrays["nulls"]) if "nulls" in arrays else None
    return NumberColumn(_make_patched(arrays["numbers"]), nulls, kind=kind, parts=parts, name=name)


def _make_patched(values: npt.NDArray[Any]) -> PatchedArray:
    return PatchedArray(AppendArray(values))
