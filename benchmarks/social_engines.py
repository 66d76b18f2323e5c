"""The engines that answer questions to a social network: this one and its peers.

Each is imported when it is made: a process that measures how one of them starts must not pay for
the others. Every engine gets each question once before it is timed and may keep its plan. Answers
are rows of Python values.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from social_queries import Question, Value

if TYPE_CHECKING:
    from social_network import Network

Rows = list[tuple[Any, ...]]  # Any: values of any type
Ask = Callable[[Mapping[str, Value]], Rows]


class Engine(Protocol):
    """Something that answers."""

    name: str

    def prepared(self, question: Question) -> Ask:
        """What answers a question."""

    def close(self) -> None:
        """Let the files go."""


class Ours:
    """This engine, at one snapshot; persons are texts in it."""

    name = "omnigraph"

    def __init__(self, folder: Path, network: Network | None = None) -> None:
        if network is None:
            import omnigraph  # noqa: PLC0415

            self._graph = omnigraph.open(str(folder))
        else:
            from social_network import load  # noqa: PLC0415

            self._graph = load(network, folder)
        self._snapshot = self._graph.branch().snapshot()

    def prepared(self, question: Question) -> Ask:
        """Plans are kept by text."""

        def ask(params: Mapping[str, Value]) -> Rows:
            given = {name: _slug(name, value) for name, value in params.items()}
            rows = self._snapshot.query(question.gq, params=given).to_pylist()
            return [tuple(row.values()) for row in rows]

        return ask

    def close(self) -> None:
        """Let the files go."""
        self._graph.close()


def _slug(name: str, value: Value) -> Value | list[str]:
    if isinstance(value, list):
        return [f"p{number}" for number in value]
    return f"p{value}" if name == "who" else value


class Duck:
    """DuckDB on a file, with indexes on persons and on who follows, and prepared statements."""

    name = "DuckDB"

    def __init__(self, path: Path, network: Network | None = None) -> None:
        import duckdb  # noqa: PLC0415

        self._connection = duckdb.connect(str(path))
        if network is not None:
            self._fill(network)

    def _fill(self, network: Network) -> None:
        for name, rows in (network.nodes | network.edges).items():
            self._connection.register("rows", rows)
            self._connection.execute(f"CREATE TABLE {name.lower()} AS SELECT * FROM rows")
        self._connection.execute("CREATE UNIQUE INDEX people ON person(id)")
        self._connection.execute('CREATE INDEX followed ON follows("from")')
        self._connection.execute("CHECKPOINT")

    def prepared(self, question: Question) -> Ask:
        """A statement that is planned once."""
        self._connection.execute(f'PREPARE "{question.name}" AS {question.sql}')

        def ask(params: Mapping[str, Value]) -> Rows:
            given = ", ".join(f"{key} := {_literal(value)}" for key, value in params.items())
            values = f"({given})" if given else ""
            return self._connection.execute(f'EXECUTE "{question.name}"{values}').fetchall()

        return ask

    def close(self) -> None:
        """Let the file go."""
        self._connection.close()


def _literal(value: Value) -> str:
    return f"'{value}'" if isinstance(value, str) else str(value)


class Bug:
    """Ladybug on a file, with prepared statements."""

    name = "Ladybug"

    def __init__(self, path: Path, network: Network | None = None) -> None:
        import ladybug  # noqa: PLC0415

        self._database = ladybug.Database(str(path))
        self._connection = ladybug.Connection(self._database)
        if network is not None:
            self._fill(network)

    def _fill(self, network: Network) -> None:
        from social_network import ENDS  # noqa: PLC0415

        kinds = {"int64": "INT64", "string": "STRING", "bool": "BOOL", "date32[day]": "DATE"}
        for name, rows in network.nodes.items():
            columns = ", ".join(f"{each.name} {kinds[str(each.type)]}" for each in rows.schema)
            self._run(f"CREATE NODE TABLE {name}({columns}, PRIMARY KEY(id))")
            self._run(f"COPY {name} FROM rows", rows)
        for name, rows in network.edges.items():
            source, target = ENDS[name]
            self._run(f"CREATE REL TABLE {name}(FROM {source} TO {target})")
            self._run(f"COPY {name} FROM rows", rows)

    def _run(self, text: str, rows: object = None) -> None:
        # Ladybug reads Arrow tables from the variables of its caller, here `rows`.
        self._connection.execute(text)
        del rows

    def prepared(self, question: Question) -> Ask:
        """A statement that is planned once."""
        with warnings.catch_warnings():
            # Without a prepared statement every call is planned again.
            warnings.simplefilter("ignore", DeprecationWarning)
            statement = self._connection.prepare(question.cypher)

        def ask(params: Mapping[str, Value]) -> Rows:
            answer: Any = self._connection.execute(statement, dict(params))  # Any: untyped library
            return [tuple(row) for row in answer.get_all()]

        return ask

    def close(self) -> None:
        """Let the file go."""
        self._connection.close()
        self._database.close()


class Fusion:
    """DataFusion on tables in memory; it plans every call."""

    name = "DataFusion"

    def __init__(self, network: Network) -> None:
        import datafusion  # noqa: PLC0415

        self._context = datafusion.SessionContext()
        for name, rows in (network.nodes | network.edges).items():
            self._context.register_record_batches(name.lower(), [rows.to_batches()])

    def prepared(self, question: Question) -> Ask:
        """The text, with the values in it."""

        def ask(params: Mapping[str, Value]) -> Rows:
            text = question.sql
            for key, value in params.items():
                text = text.replace(f"${key}", _literal(value))
            batches = self._context.sql(text).collect()
            return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]

        return ask

    def close(self) -> None:
        """Nothing to let go."""
