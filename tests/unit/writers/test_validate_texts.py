"""What a violation says besides its value: the rule it breaks, shortened."""

from __future__ import annotations

from unit.writers.validation_world import ValidationWorld, Write


def test_bounds_values_and_patterns_are_told_and_cut_when_they_are_long() -> None:
    names = ", ".join(f"state{n:03}" for n in range(100))
    graph = ValidationWorld(
        f"""node T {{
            a: I32?  b: enum({names})?  c: String?
            @range(a, 5..)  @check(c, "^({"x|" * 100}y)$")
        }}"""
    )
    rows = [{"@id": "1", "a": 4, "b": "other", "c": "z"}]
    range_, enum, check = sorted(graph.messages({"T": Write(rows)}))
    assert range_ == "@check violation on T.c: 'z' (/^(" + "x|" * 38 + "x…/)"
    assert enum == "@range violation on T.a: 4 (at least 5)"
    assert check.startswith("invalid enum value 'other' for T.b (state000, state001, ")
    assert check.endswith("…)")
