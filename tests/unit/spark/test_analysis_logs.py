from __future__ import annotations

import logging
import threading
from collections.abc import Iterator

import pytest
from pyspark.logger import PySparkLogger

from omnigraph.spark.sql_analysis import suppress_error_logging

NAMES = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


class Heard(logging.Handler):
    """Keeps what is told."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


@pytest.fixture
def said() -> Iterator[list[str]]:
    """What PySpark tells of the failures that it raises."""
    heard, loggers = Heard(), [PySparkLogger.getLogger(name) for name in NAMES]
    for logger in loggers:
        logger.addHandler(heard)
    yield heard.texts
    for logger in loggers:
        logger.removeHandler(heard)


def say(text: str) -> None:
    for name in NAMES:
        PySparkLogger.getLogger(name).error(text)


def test_what_is_expected_is_told_nowhere(said: list[str]) -> None:
    with suppress_error_logging():
        say("expected")
    say("unexpected")
    assert said == ["unexpected"] * len(NAMES)


def test_uses_that_overlap_leave_everything_as_it_was(said: list[str]) -> None:
    is_first_in, is_second_in, is_first_out = (threading.Event() for _ in range(3))

    def first() -> None:
        with suppress_error_logging():
            is_first_in.set()
            assert is_second_in.wait(10)
        is_first_out.set()

    def second() -> None:
        assert is_first_in.wait(10)
        with suppress_error_logging():
            is_second_in.set()
            assert is_first_out.wait(10)
            say("expected")

    threads = [threading.Thread(target=each) for each in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    say("unexpected")
    assert said == ["unexpected"] * len(NAMES)


def test_others_are_heard_meanwhile(said: list[str]) -> None:
    with suppress_error_logging():
        thread = threading.Thread(target=say, args=("another's",))
        thread.start()
        thread.join()
        say("expected")
    assert said == ["another's"] * len(NAMES)
