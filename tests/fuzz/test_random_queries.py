"""A short run of `fuzz.queries`: the suite has no time for more."""

from __future__ import annotations

import pytest

from fuzz.agreement import FEATURES
from fuzz.lives import Life, Load
from fuzz.queries import run
from fuzz.reads import Ask
from fuzz.shorten import shortened

EXAMPLES = 60
# For every run of the tests: other lives than those of the slow test.
FEW, ELSEWHERE = 8, 2


def test_queries_on_a_few_random_graphs_have_the_answers_of_the_model() -> None:
    counted = run(FEW, start=ELSEWHERE)
    assert counted["lives"] >= FEW
    assert counted["empty"] < counted["Ask"]


@pytest.mark.slow
def test_random_queries_on_random_graphs_have_the_answers_of_the_model() -> None:
    counted = run(EXAMPLES)
    assert counted["lives"] >= EXAMPLES
    # A generator whose queries mostly find nothing, or never say something, would test nothing.
    # Offsets and `having` leave some of them without rows.
    assert counted["empty"] < 0.75 * counted["Ask"]
    assert [name for name in FEATURES if not counted[name]] == []
    assert counted["pages"] > EXAMPLES // 6
    assert counted["guarded"] > counted["Ask"] // 2


def test_a_failing_life_is_shortened_to_what_fails() -> None:
    nodes = [f'{{"type": "Thing", "id": "{id_}", "data": {{"label": "x"}}}}' for id_ in "abcdef"]
    text = "query q() {\nmatch {\n$a: Thing\nnot {\n$a partOf $b\n}\n}\nreturn {\n$a.@id as x\n}\n}"
    life = Life((Load("\n".join(nodes)), Ask(text, {}), Ask(text, {})))

    def fails(other: Life) -> bool:
        first, *others = other.steps or (None,)
        asked = [each for each in others if isinstance(each, Ask)]
        return isinstance(first, Load) and '"d"' in first.lines and bool(asked)

    short = shortened(life, fails)
    assert short == Life(
        (
            Load('{"type": "Thing", "id": "d", "data": {}}'),
            Ask("query q() {\n}", {}),
        )
    )
