"""The group of options of the verbs that may run on Spark: on which engine, and where Spark is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from enum import StrEnum
from types import ModuleType
from typing import Annotated

import typer


class ReadEngine(StrEnum):
    """The engine of a read."""

    LOCAL = "local"
    SPARK = "spark"


@dataclass(frozen=True, slots=True)
class SparkTarget:
    """Where Spark runs."""

    master: Annotated[
        str | None,
        typer.Option(
            "--master",
            metavar="URL",
            help="The master of a Spark cluster.",
            show_default="SPARK_MASTER_URL, else this machine",
        ),
    ] = None
    remote: Annotated[
        str | None,
        typer.Option(
            "--spark-remote",
            metavar="URL",
            help="The address of a Spark Connect server.",
            show_default="SPARK_REMOTE",
        ),
    ] = None
    conf: Annotated[
        list[str] | None,
        typer.Option(
            "--spark-conf", metavar="KEY=VALUE", help="A setting of Spark; may be repeated."
        ),
    ] = None

    def __post_init__(self) -> None:
        if self.master is not None and self.remote is not None:
            raise typer.BadParameter("--master and --spark-remote exclude each other")
        # Whether a setting can be read is known before anything starts.
        _ = self.settings

    @property
    def is_given(self) -> bool:
        """Whether anything was said about Spark."""
        return self.master is not None or self.remote is not None or bool(self.conf)

    @property
    def settings(self) -> Mapping[str, str]:
        """The settings of Spark."""
        found: dict[str, str] = {}
        for each in self.conf or ():
            key, equals, value = each.partition("=")
            if not key or not equals:
                raise typer.BadParameter(f"--spark-conf: '{each}' is not KEY=VALUE")
            found[key] = value
        return found

    @contextmanager
    def use_session(self) -> Iterator[None]:
        """Let what needs Spark meanwhile start it there: nothing else starts it."""
        module = import_spark_module("spark_session")
        with module.use_options(module.SparkOptions(self.master, self.remote, self.settings)):
            yield


@dataclass(frozen=True, slots=True)
class ReadExecution(SparkTarget):
    """The engine of a read, and where Spark runs."""

    engine: Annotated[
        ReadEngine, typer.Option("--engine", help="Answer in this process, or by tasks on Spark.")
    ] = ReadEngine.LOCAL

    def __post_init__(self) -> None:
        # Without arguments, super() does not know a class that was made anew for its slots.
        SparkTarget.__post_init__(self)
        if self.is_given and self.engine is ReadEngine.LOCAL:
            raise typer.BadParameter("options about Spark need --engine spark")

    @property
    def engine_name(self) -> str | None:
        """The engine, if it is another one than this process."""
        return None if self.engine is ReadEngine.LOCAL else self.engine.value

    @contextmanager
    def use_engine(self) -> Iterator[None]:
        """Let Spark answer meanwhile, if it is to."""
        with self.use_session() if self.engine is ReadEngine.SPARK else nullcontext():
            yield


def import_spark_module(name: str) -> ModuleType:
    """A module of `omnigraph.spark`."""
    # The engine takes time to import, which help and mistakes need not wait for.
    from omnigraph.engine import spark_bridge

    return spark_bridge.import_spark_module(name)
