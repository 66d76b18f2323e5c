from __future__ import annotations

import pytest

from omnigraph.pipelines.mapping.mapping_sql import expand_stars

NAMES = ["`a`", "`b c`"]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("struct(*)", "struct(`a`, `b c`)"),
        ("struct( * )", "struct( `a`, `b c` )"),
        ("struct(1 AS one, *)", "struct(1 AS one, `a`, `b c`)"),
        ("struct(*, 2 AS two)", "struct(`a`, `b c`, 2 AS two)"),
        ("struct(struct(*) AS all, *)", "struct(struct(`a`, `b c`) AS all, `a`, `b c`)"),
        ("struct(/* all */ * -- of them\n)", "struct(/* all */ `a`, `b c` -- of them\n)"),
    ],
)
def test_names_are_put_in_place_of_stars_among_arguments(sql: str, expected: str) -> None:
    assert expand_stars(sql, NAMES) == expected


@pytest.mark.parametrize(
    "sql",
    [
        "replace('a(*)b', 'zz', login)",
        "concat('it\\'s (*)', \"(*)\", r'\\', '(*)')",
        "`(*)`",
        "`a``(*)`",
        "a * b",
        "(a) * (b)",
        "transform(xs, x -> x * 2)",
        "xs[0] * 'a(*)'",
        "struct(item.*)",
        "count(*) OVER ()",
        "a -- (*)",
        "a /* (*) */",
    ],
)
def test_other_stars_stay_as_they_are(sql: str) -> None:
    assert expand_stars(sql, NAMES) == sql


@pytest.mark.parametrize(
    "sql", ["*", "struct(* EXCEPT (a))", "f(a, * EXCEPT (b))", "f(DISTINCT *)", "a *", "* a"]
)
def test_a_star_that_names_cannot_stand_for_is_refused(sql: str) -> None:
    assert expand_stars(sql, NAMES) is None
