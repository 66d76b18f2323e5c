"""Errors that are what became of an interruption."""

from __future__ import annotations

import pytest

from omnigraph.errors.base_error import interruption_of, raise_interruptions


class Stopped(KeyboardInterrupt):
    """One kind of interruption."""


def _cleaned_up_badly() -> None:
    try:
        try:
            raise Stopped
        finally:
            raise OSError("the connection is gone")
    except OSError as failure:
        raise ValueError("no answer") from failure


def _answered() -> None:
    try:
        raise Stopped
    except Stopped as stop:
        raise RuntimeError("stopped") from stop


def test_what_became_of_an_interruption_is_the_interruption_again() -> None:
    with pytest.raises(Stopped) as raised, raise_interruptions():
        _cleaned_up_badly()
    assert isinstance(raised.value.__cause__, ValueError)


def test_other_errors_stay_what_they_are() -> None:
    error = ValueError("no number")
    with pytest.raises(ValueError, match="no number") as raised, raise_interruptions():
        raise error
    assert raised.value is error


def test_an_answer_to_an_interruption_is_no_interruption() -> None:
    with pytest.raises(RuntimeError, match="stopped") as raised:
        _answered()
    assert interruption_of(raised.value) is None
