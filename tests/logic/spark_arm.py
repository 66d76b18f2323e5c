"""The engine as an arm whose reads run on Spark, beside the local engine; both must agree.

Graphs live on the disk, where executors can read them. A ranked read is refused by this engine, as
it should be, and only the local answer counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from logic.answers import RowsAnswer
from logic.arms import Request
from logic.embedded_arm import EmbeddedArm, EmbeddedSession, is_alike
from omnigraph.errors import EngineUnsupportedError, OmnigraphError
from omnigraph.lang.lexer import Mode

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# For a few rows, to compile a plan takes longer than to run it.
CONF = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
}


@dataclass(frozen=True, slots=True)
class SparkArm:
    """Runs a case on graphs in a folder, with the session of this process."""

    folder: Path
    name: str = "spark"

    def open(self, schema: str, *, mode: Mode) -> SparkArmSession:
        """A session on a new graph."""
        return SparkArmSession(schema, EmbeddedArm("spark", "local", folder=self.folder), mode=mode)


class SparkArmSession(EmbeddedSession):
    """A graph that is also read on Spark."""

    def query(self, text: str, request: Request) -> RowsAnswer:
        """Run the one read of a text on both engines."""
        local = self.answer(self.graph, text, request)
        found = self.answer(self.graph, text, request, engine="spark")
        if not isinstance(found, EngineUnsupportedError):
            assert is_alike(local, found), f"spark: {found}\nlocal: {local}"
        if isinstance(local, OmnigraphError):
            raise local
        return local.rows


def small_session() -> SparkSession:
    """A Spark session for reads of a few rows."""
    # Who does not run this arm needs no Spark.
    from omnigraph.spark.spark_session import SparkOptions, get_session  # noqa: PLC0415

    return get_session(SparkOptions(master="local[2]", conf=CONF))
