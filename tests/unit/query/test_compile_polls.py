"""Compilations that may not go on: every stage asks often enough whether it may."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from omnigraph.lang.diagnostics import Collector
from omnigraph.lang.lexer import lex
from omnigraph.query.check import check_query
from omnigraph.query.logical_plan import Exists, ReadPlan
from omnigraph.query.query_compiler import compile_query, parse_file
from omnigraph.query.query_lowering import lower_query
from omnigraph.query.rewrites import RULES, rewrite
from omnigraph.query.tree_walk import bound_variables_of, chain_of
from omnigraph.query.typed_reads import Read
from omnigraph.schema import load_catalog

CATALOG = load_catalog("node Person { name: String @key age: I64? }  edge Knows: Person -> Person")
COUNT = 2_000


class Ended(Exception):
    """What a poll raises to end a compilation."""


class Polls:
    """Counts polls, and ends the compilation at one of them."""

    def __init__(self, most: int | None = None) -> None:
        self.count = 0
        self._most = most

    def __call__(self) -> None:
        self.count += 1
        if self._most is not None and self.count > self._most:
            raise Ended


def _query(clauses: str, returned: str = "$p.name") -> str:
    return f"query q() {{ match {{ $p: Person\n{clauses} }} return {{ {returned} }} }}"


TEXTS: dict[str, str] = {
    "an or chain": _query(" or ".join(f'$p.name = "n{n}"' for n in range(COUNT))),
    "many filters": _query("\n".join(f'$p.name != "n{n}"' for n in range(COUNT))),
    "a long list": _query(f"$p.age in [{', '.join(map(str, range(COUNT)))}]"),
    "many variables": _query("\n".join(f"$v{n}: Person" for n in range(COUNT))),
    "many hops": _query("\n".join(f"$p knows $v{n}" for n in range(COUNT))),
    "many blocks": _query("\n".join("not { $p knows $x }" for _ in range(COUNT))),
    "many columns": _query("", ", ".join(f"$p.name as c{n}" for n in range(COUNT))),
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_every_stage_polls_for_each_part_of_a_text(text: str) -> None:
    lexing, reading, checking, lowering, rewriting = (Polls() for _ in range(5))
    parsed = parse_file(text, poll=reading)
    lex(parsed.source, lexing)
    collector = Collector(parsed.source, poll=checking)
    checked = check_query(parsed.file.queries[0], CATALOG, collector)
    assert checked is not None
    rewrite(lower_query(checked, lowering), CATALOG, rewriting)
    assert lexing.count >= COUNT // 1_024
    assert reading.count >= COUNT
    assert checking.count >= COUNT
    assert isinstance(checked, Read)
    assert lowering.count >= len(checked.pattern.clauses)
    assert rewriting.count == len(RULES)


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("most", [0, 10, COUNT])
def test_what_a_poll_raises_ends_a_compilation(text: str, most: int) -> None:
    with pytest.raises(Ended):
        compile_query(text, CATALOG, poll=Polls(most))


def test_names_of_many_blocks_stay_apart() -> None:
    plan = compile_query(TEXTS["many blocks"], CATALOG).plan
    assert isinstance(plan, ReadPlan)
    blocks = [each.block for each in chain_of(plan.root) if isinstance(each, Exists)]
    names = [name for block in blocks for name in bound_variables_of(block)]
    assert names == ["x", *(f"x#{number}" for number in range(2, COUNT + 1))]


def test_an_interruption_is_not_taken_for_a_finding() -> None:
    poll: Callable[[], None] = Polls(0)
    with pytest.raises(Ended):
        parse_file("query q( { match", poll=poll)
