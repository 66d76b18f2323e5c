"""What later parts of the language cost beside DuckDB and Ladybug; answers are equal.

Optional matches, the best of each group, counts of distinct nodes, and paths, on a social network.
Algorithms have a benchmark of their own.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Final

from queries_report import Line, faster_by, print_lines, take_turns
from social_engines import Bug, Duck, Engine, Ours, Rows
from social_network import generate
from social_queries import Question

PEOPLE: Final = 20_000
FOLLOWS: Final = 200_000
ENDS: Final = 32
ROUNDS: Final = 5

QUESTIONS: Final = (
    Question(
        "interests",
        "interests of those aged 30, if any",
        """query interests() {
  match { $p: Person { age: 30 } optional { $p hasInterest $i } }
  return { $p.@id as id, collect($i.interest order { $i.interest }) as interests }
}""",
        """SELECT p.id, coalesce(list(i.interest ORDER BY i.interest)
  FILTER (i.interest IS NOT NULL), []) FROM person p
LEFT JOIN hasinterest h ON h."from" = p.id LEFT JOIN interest i ON i.id = h."to"
WHERE p.age = 30 GROUP BY p.id""",
        """MATCH (p:Person) WHERE p.age = 30 OPTIONAL MATCH (p)-[:HasInterest]->(i:Interest)
RETURN p.id, list_sort(collect(i.interest))""",
    ),
    Question(
        "top",
        "the three most followed of each city",
        """query top() {
  match {
    $c: City
    each { $p livesIn $c let $n = count { $f follows $p } } order { $n desc, $p.@id } limit 3
  }
  return { $c.city as city, $n as n }
}""",
        """SELECT c.city, n FROM (
  SELECT l."to", coalesce(f.n, 0) AS n FROM livesin l
  LEFT JOIN (SELECT "to", count(*) AS n FROM follows GROUP BY "to") f ON f."to" = l."from"
  QUALIFY row_number() OVER (PARTITION BY l."to" ORDER BY coalesce(f.n, 0) DESC, l."from") <= 3
) t JOIN city c ON c.id = t."to\"""",
        """MATCH (p:Person)-[:LivesIn]->(c:City) OPTIONAL MATCH (f:Person)-[:Follows]->(p)
WITH c, p, count(f) AS n WITH c, list_reverse_sort(collect(n))[1:3] AS best
UNWIND best AS n RETURN c.city, n""",
    ),
    Question(
        "reach",
        "whom more than 120 are within two steps",
        """query reach() {
  match { $a: Person $a follows $b $b follows $c }
  return { $a.@id as id, count(distinct $c) as n }
  having { n > 120 }
}""",
        """SELECT a."from" AS id, count(DISTINCT b."to") AS n FROM follows a
JOIN follows b ON b."from" = a."to" GROUP BY a."from" HAVING n > 120""",
        """MATCH (a:Person)-[:Follows]->(b:Person)-[:Follows]->(c:Person)
WITH a.id AS id, count(DISTINCT c.id) AS n WHERE n > 120 RETURN id, n""",
    ),
    Question(
        "shortest",
        "shortest paths of 1,024 pairs",
        """query shortest($xs: [String], $ys: [String]) {
  match {
    $a: Person
    $a.slug in $xs
    $b: Person
    $b.slug in $ys
    path $p = $a follows{1,} $b
  }
  return { count(*) as n, sum(length($p)) as hops }
}""",
        """WITH RECURSIVE reached(src, id, hops) AS (
  SELECT unnest($xs), unnest($xs), 0 UNION
  SELECT src, f."to", hops + 1 FROM reached JOIN follows f ON f."from" = reached.id WHERE hops < 9
) SELECT count(*), sum(hops) FROM (
  SELECT src, id, min(hops) AS hops FROM reached WHERE id IN (SELECT unnest($ys)) AND hops > 0
  GROUP BY src, id)""",
        """MATCH (a:Person)-[e:Follows* SHORTEST 1..30]->(b:Person)
WHERE a.id IN $xs AND b.id IN $ys RETURN count(*), sum(length(e))""",
    ),
    Question(
        "all",
        "all paths of up to three hops between two groups of ten",
        """query all($xs: [String], $ys: [String]) {
  match {
    $a: Person
    $a.slug in $xs
    $b: Person
    $b.slug in $ys
    path $p = all $a follows{1,3} $b
  }
  return { count(*) as n, sum(length($p)) as hops }
}""",
        """WITH RECURSIVE ways(src, id, way) AS (
  SELECT unnest($xs), unnest($xs), [unnest($xs)] UNION ALL
  SELECT src, f."to", list_append(way, f."to") FROM ways JOIN follows f ON f."from" = ways.id
  WHERE len(way) < 4 AND NOT list_contains(way, f."to")
) SELECT count(*), sum(len(way) - 1) FROM ways
WHERE len(way) > 1 AND id IN (SELECT unnest($ys))""",
        """MATCH (a:Person)-[e:Follows* ACYCLIC 1..3]->(b:Person)
WHERE a.id IN $xs AND b.id IN $ys RETURN count(*), sum(length(e))""",
    ),
)


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as name:
        print_lines("language", (Ours.name, Duck.name, Bug.name), _lines(Path(name)))


def _lines(folder: Path) -> Iterator[Line]:
    network = generate(people=PEOPLE, follows=FOLLOWS)
    engines: list[Engine] = [
        Ours(folder / "graph.omni", network),
        Duck(folder / "duck.db", network),
        Bug(folder / "bug.db", network),
    ]
    people = random.Random(5).sample(range(PEOPLE), 2 * ENDS)
    for question in QUESTIONS:
        count = 10 if question.name == "all" else ENDS
        params = {"xs": people[:count], "ys": people[ENDS : ENDS + count]}
        asked = replace(question, params=params if "$xs" in question.gq else {})
        yield faster_by(asked.about, _measured(asked, engines), Ours.name, budget=1.0)
    for engine in engines:
        engine.close()


def _measured(question: Question, engines: Sequence[Engine]) -> dict[str, float]:
    """The medians of engines whose answers are the same."""
    works = {each.name: [partial(each.prepared(question), question.params)] for each in engines}
    answers = {name: _plain(ask()) for name, (ask,) in works.items()}
    for name, answer in answers.items():
        wrong = f"{question.name}: {name} answers {answer[:2]}, not {answers[Ours.name][:2]}"
        assert answer == answers[Ours.name], wrong
    return take_turns(works, rounds=ROUNDS)


def _plain(rows: Rows) -> list[str]:
    """Rows in one order; persons are numbers everywhere."""
    return sorted(str([_number(value) for value in row]) for row in rows)


def _number(value: object) -> object:
    if isinstance(value, str) and value[0] == "p" and value[1:].isdigit():
        return int(value[1:])
    return int(value) if isinstance(value, int | float | Decimal) else value


if __name__ == "__main__":
    main()
