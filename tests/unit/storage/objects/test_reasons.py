from __future__ import annotations

from omnigraph.storage.objects.remote_store import reason_of


def test_alike_failures_are_told_alike() -> None:
    for took in ("3.383723ms", "12.9µs", "871ns", "30s"):
        error = OSError(f"Error performing GET http://h/b/k in {took} - HTTP error: no\n\nDebug: x")
        assert reason_of(error) == "Error performing GET http://h/b/k - HTTP error: no"


def test_the_rest_of_a_message_is_left_alone() -> None:
    assert reason_of(ValueError("5 rows in 3 fragments in a table")) == (
        "5 rows in 3 fragments in a table"
    )
