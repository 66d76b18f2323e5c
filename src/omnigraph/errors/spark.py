"""What Spark needs is missing, or a job on it failed."""

from __future__ import annotations

from omnigraph.errors.asking import LibraryMissingError
from omnigraph.errors.base import OmnigraphError


class SparkMissingError(LibraryMissingError):
    """Something that runs on Spark, where PySpark is not installed."""

    code = "spark_missing"

    def __init__(self) -> None:
        super().__init__("Spark")
        self.hint = "pip install 'omnigraph[spark]'"


class JavaMissingError(OmnigraphError):
    """No Java that Spark can run on; `tried` says what was looked at, and what is wrong with it."""

    code = "java_missing"

    def __init__(self, tried: tuple[str, ...]) -> None:
        looked = "; ".join(tried)
        super().__init__(
            f"Spark needs Java 17 or newer, and none was found: {looked}",
            hint="pip install 'omnigraph[spark]', which brings one, or set JAVA_HOME",
        )
        self.tried = tried


class SparkFailedError(OmnigraphError):
    """A job that Spark gave up; `job` is what it was to do. Nothing was committed by it."""

    code = "spark_failed"
    retryable = True

    def __init__(self, job: str, reason: str) -> None:
        super().__init__(
            f"Spark could not {job}: {reason}",
            hint="look at the logs of the executors, then repeat it",
        )
        self.job = job
        self.reason = reason


class SparkDriverLostError(SparkFailedError):
    """The Java process of Spark's driver ended, or its server does not answer any more."""

    code = "spark_driver_lost"

    def __init__(self, job: str) -> None:
        super().__init__(job, "the Java process of its driver ended")
        self.hint = (
            "it may have run out of memory: give it more with the setting spark.driver.memory, look"
            " at its log and at that of the machine, then repeat it"
        )
