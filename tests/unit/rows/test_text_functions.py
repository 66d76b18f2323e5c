"""Functions that would make more text than memory holds are refused before they begin."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from omnigraph.errors import ResourceLimitError
from omnigraph.rows.comparison import skip_poll
from omnigraph.rows.kernels.function_call import FunctionCall
from omnigraph.rows.kernels.function_kernels import call_function

ROWS = 3000
TEXTS = pa.array(["a,b"] * ROWS)
LONG = pa.scalar("x" * 1_000_000)


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        ("pad_left", (TEXTS, pa.scalar(1_000_000), pa.scalar("x"))),
        ("pad_left", (TEXTS, pa.array([1_000_000] * ROWS), pa.scalar("x"))),
        ("replace", (TEXTS, pa.scalar(","), LONG)),
        ("join", (pa.array([["a", "b"]] * ROWS), LONG)),
        ("+", (TEXTS, LONG)),
    ],
)
def test_more_text_than_a_column_holds_is_refused(function: str, arguments: Any) -> None:
    call = FunctionCall(function, arguments, ROWS, pa.utf8(), skip_poll)
    with pytest.raises(ResourceLimitError, match=f"of the values that '[{function}]+' makes"):
        call_function(call)


def test_texts_that_fit_are_made() -> None:
    def call(function: str, *arguments: Any) -> list[str]:
        found = call_function(FunctionCall(function, arguments, 2, pa.utf8(), skip_poll))
        made: list[str] = found.to_pylist()
        return made

    texts = pa.array(["a,b", None])
    assert call("replace", texts, pa.scalar(","), pa.scalar("--")) == ["a--b", None]
    assert call("join", pa.array([["a", "b"], []]), pa.scalar("--")) == ["a--b", ""]
    assert call("pad_left", texts, pa.array([5, 5]), pa.scalar("x")) == ["xxa,b", None]
    # The width is too large for any text, so that there is none.
    assert call("pad_left", texts, pa.scalar(2**40), pa.scalar("x")) == [None, None]


def test_the_distance_of_long_texts_can_be_stopped() -> None:
    class StoppedError(Exception):
        pass

    polls = iter(range(3))

    def poll() -> None:
        if next(polls, None) is None:
            raise StoppedError

    # One pair alone would take minutes.
    call = FunctionCall("edit_distance", (LONG, LONG), 1, pa.int64(), poll)
    with pytest.raises(StoppedError):
        call_function(call)
