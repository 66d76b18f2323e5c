"""Write the sample data of examples/research: the same bytes every time.

Papers, who wrote them, where, about what, and what they cite. A paper cites only earlier ones.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any

FILE = Path(__file__).parents[1] / "examples" / "research" / "research.jsonl"
SEED = 20261119
AUTHORS, PAPERS, DIMENSION = 60, 150, 64
FIRST_DAY = date(2015, 1, 1)
GIVEN = ("Ada", "Bela", "Chen", "Dora", "Emil", "Fatou", "Goran", "Hanna", "Ines", "Jonas")
FAMILY = ("Lind", "Okafor", "Petrov", "Quist", "Rossi", "Sato")
INSTITUTIONS = (
    ("0001", "Fjord University", "Norway"),
    ("0002", "Lagoon Institute", "Italy"),
    ("0003", "Northern Polytechnic", "Norway"),
    ("0004", "Harbour College", "Japan"),
    ("0005", "Delta University", "Nigeria"),
    ("0006", "Plateau Laboratory", "Brazil"),
    ("0007", "Old Town University", "Italy"),
)
VENUES = (
    ("jgraph", "Journal of Graphs", "journal"),
    ("storage", "Storage Letters", "journal"),
    ("qconf", "Query Conference", "conference"),
    ("lconf", "Learning Conference", "conference"),
    ("vecws", "Workshop on Vectors", "workshop"),
)
# A topic, its name, and the one that it is a part of.
TOPICS = (
    ("cs", "Computing", None),
    ("db", "Databases", "cs"),
    ("graph", "Graph databases", "db"),
    ("match", "Pattern matching", "graph"),
    ("store", "Storage", "db"),
    ("ml", "Learning", "cs"),
    ("vec", "Embeddings", "ml"),
    ("hci", "Interfaces", "cs"),
)
KEYWORDS = ("graph", "index", "join", "log", "merge", "path", "rank", "schema", "tree", "vector")
KINDS = ("A study of", "Notes on", "Fast", "What are", "Distributed", "Towards")
THINGS = ("graphs", "networks", "joins", "indexes", "logs", "paths", "rankings", "trees")
Record = dict[str, Any]


def main() -> None:
    """Write the file."""
    lines = [json.dumps(record, separators=(",", ":")) for record in iter_records()]
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text("\n".join(lines) + "\n")


def iter_records() -> Iterator[Record]:
    """All nodes, and then all edges."""
    dice = random.Random(SEED)  # noqa: S311 — sample data
    authors = [f"a{number:05}" for number in range(1, AUTHORS + 1)]
    papers = [f"10.1/{number:03}" for number in range(1, PAPERS + 1)]
    yield from iter_fixed_nodes()
    yield from iter_authors(dice, authors)
    yield from iter_papers(dice, papers)
    for code, _, parent in TOPICS:
        if parent is not None:
            yield build_edge("SubtopicOf", code, parent)
    for author in authors:
        for ror, _, _ in dice.sample(INSTITUTIONS, dice.choice((0, 1, 1, 1, 2))):
            since = FIRST_DAY + timedelta(days=dice.randrange(3000))
            yield build_edge("AffiliatedWith", author, ror, since=since.isoformat())
    for number, paper in enumerate(papers):
        yield from iter_edges_of(dice, paper, authors, papers[:number])


def iter_fixed_nodes() -> Iterator[Record]:
    """The nodes that are written above."""
    for ror, name, country in INSTITUTIONS:
        yield build_node("Institution", ror=ror, name=name, country=country)
    for slug, name, kind in VENUES:
        yield build_node("Venue", slug=slug, name=name, kind=kind)
    for code, name, _ in TOPICS:
        yield build_node("Topic", code=code, name=name)


def iter_authors(dice: random.Random, orcids: Sequence[str]) -> Iterator[Record]:
    """Authors, some without an index of citations."""
    for number, orcid in enumerate(orcids):
        name = f"{GIVEN[number % len(GIVEN)]} {FAMILY[number // len(GIVEN)]}"
        index = dice.choice((None, dice.randrange(1, 60)))
        yield build_node("Author", orcid=orcid, name=name, hIndex=index)


def iter_papers(dice: random.Random, dois: Sequence[str]) -> Iterator[Record]:
    """Papers in the order of their days, some without keywords, pages or a vector."""
    day = FIRST_DAY
    for number, doi in enumerate(dois):
        day += timedelta(days=dice.randrange(5, 45))
        words = dice.sample(KEYWORDS, dice.randrange(6))
        title = f"{dice.choice(KINDS)} {dice.choice(THINGS)} {number + 1}"
        vector = [dice.randrange(-3, 4) for _ in range(DIMENSION)]
        yield build_node(
            "Paper",
            doi=doi,
            title=f"{title}?" if title.startswith("What") else title,
            publishedOn=day.isoformat(),
            status=dice.choices(("published", "preprint", "retracted"), (12, 5, 1))[0],
            keywords=words or None,
            pages=dice.choice((None, dice.randrange(4, 40), dice.randrange(4, 40))),
            openAccess=dice.random() < 0.6,
            vec=vector if number % 10 else None,
        )


def iter_edges_of(
    dice: random.Random, paper: str, authors: Sequence[str], earlier: Sequence[str]
) -> Iterator[Record]:
    """Who wrote a paper, what it cites, where it appeared, and what it is about."""
    for position, author in enumerate(dice.sample(authors, dice.randrange(1, 5)), start=1):
        yield build_edge("Wrote", author, paper, position=position, corresponding=position == 1)
    recent = earlier[-40:]
    for cited in dice.sample(recent, min(len(recent), dice.randrange(6))):
        yield build_edge("Cites", paper, cited)
    if dice.random() < 0.8:
        yield build_edge("PublishedIn", paper, dice.choice(VENUES)[0])
    for code, _, _ in dice.sample(TOPICS[1:], dice.randrange(1, 3)):
        yield build_edge("About", paper, code, score=dice.randrange(1, 5) / 4)


def build_node(type_name: str, **data: Any) -> Record:
    """A record of a node without what it lacks."""
    present = {name: value for name, value in data.items() if value is not None}
    return {"type": type_name, "data": present}


def build_edge(type_name: str, source: str, target: str, **data: Any) -> Record:
    """A record of an edge."""
    record: Record = {"edge": type_name, "from": source, "to": target}
    return record | ({"data": data} if data else {})


if __name__ == "__main__":
    main()
