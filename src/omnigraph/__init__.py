"""Omnigraph: a lakehouse graph database.

    graph = omnigraph.create("./org.omni", schema=text, actor="ada")
    main = graph.branch("main")
    main.load("people.jsonl", mode="append")
    print(main.query(queries, name="colleagues", params={"who": "Ada"}).to_pandas())

Graphs bring their libraries with them when they are first used: compilers and commands that only
read texts start without.
"""

from typing import TYPE_CHECKING, Any

from omnigraph import errors

if TYPE_CHECKING:
    from omnigraph.engine import Branch, Cancellation, Commit, Graph, Snapshot, connect
    from omnigraph.engine import create_graph as create
    from omnigraph.engine import open_graph as open  # noqa: A004

__version__ = "0.1.0"

__all__ = [
    "Branch",
    "Cancellation",
    "Commit",
    "Graph",
    "Snapshot",
    "__version__",
    "connect",
    "create",
    "errors",
    "open",
]

_ENGINE = {
    "Branch": "Branch",
    "Cancellation": "Cancellation",
    "Commit": "Commit",
    "Graph": "Graph",
    "Snapshot": "Snapshot",
    "connect": "connect",
    "create": "create_graph",
    "open": "open_graph",
}


def __getattr__(name: str) -> Any:  # whatever the engine has under the name
    if name not in _ENGINE:
        raise AttributeError(f"module 'omnigraph' has no attribute {name!r}")
    from omnigraph import engine  # noqa: PLC0415 — heavy: see above

    found = globals()[name] = getattr(engine, _ENGINE[name])
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
