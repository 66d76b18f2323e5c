"""Limits that parameters give, as the numbers that they are in one request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from omnigraph.errors import ParameterError
from omnigraph.query.logical_plan import Limit, Operator, ParameterLimit, Rank, ReadPlan
from omnigraph.query.tree_walk import chain_of, link_chain
from omnigraph.query.typed_tree import RowCount, RrfScore, Value


@dataclass(frozen=True, slots=True)
class LimitBinding:
    """How many rows a request wants, all if None, after so many others."""

    count: int | None = None
    offset: int = 0


NO_LIMIT = LimitBinding()


def read_limit(limit: ParameterLimit, params: Mapping[str, Value]) -> LimitBinding:
    """What the parameters of a request say; null means all rows. Raises `ParameterError`."""
    return read_counts(limit.count, limit.offset, params)


def read_counts(
    count: RowCount | None, offset: RowCount | None, params: Mapping[str, Value]
) -> LimitBinding:
    """What a limit and an offset are in a request. Raises `ParameterError`."""
    rows = _read_count("limit", count, params)
    return LimitBinding(rows, _read_count("offset", offset, params) or 0)


def bind_limit(plan: ReadPlan, binding: LimitBinding) -> ReadPlan:
    """The plan of a request, with numbers in the place of parameters."""
    root = link_chain(_iter_bound(chain_of(plan.root), binding))
    return replace(plan, root=root, open_limit=None)


def _iter_bound(chain: tuple[Operator, ...], binding: LimitBinding) -> Iterator[Operator]:
    for operator in chain:
        match operator:
            case Rank(score=RrfScore()) if binding.count is not None:
                yield replace(operator, window=binding.count + binding.offset)
            case ParameterLimit():
                # The rows that a ranked query aggregates have the limit of its result, not the
                # offset.
                own = binding if operator.offset is not None else replace(binding, offset=0)
                if own != NO_LIMIT or operator.after is not None:
                    yield Limit(operator.input, own.count, own.offset, operator.after)
            case _:
                yield operator


def _read_count(word: str, count: RowCount | None, params: Mapping[str, Value]) -> int | None:
    if count is None or isinstance(count, int):
        return count
    found = params[count.name]
    assert found is None or isinstance(found, int)
    if found is not None and found < 0:
        raise ParameterError(
            f"parameter '{count.name}': {word} needs a number that is not negative, got {found}"
        )
    return found
