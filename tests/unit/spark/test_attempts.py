from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from omnigraph.spark.spark_session import get_attempts_max


@dataclass(frozen=True)
class Settings:
    """The settings of a session, as Spark tells them."""

    values: dict[str, str]

    @property
    def conf(self) -> Settings:
        return self

    def get(self, key: str, default: str) -> str:
        return self.values.get(key, default)


@pytest.mark.parametrize(
    ("master", "failures", "expected"),
    [
        ("local", "4", 1),
        ("local[2]", "4", 1),
        ("local[*]", None, 1),
        ("local[2,4]", None, 4),
        ("local[*, 3]", "9", 3),
        ("local-cluster[2,1,512]", None, 4),
        ("spark://host:7077", "7", 7),
        ("yarn", None, 4),
    ],
)
def test_a_task_is_tried_as_often_as_its_session_says(
    master: str, failures: str | None, expected: int
) -> None:
    values = {"spark.master": master}
    if failures is not None:
        values["spark.task.maxFailures"] = failures
    session: Any = Settings(values)
    assert get_attempts_max(session) == expected
