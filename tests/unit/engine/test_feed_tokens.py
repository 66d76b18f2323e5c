"""Tokens: what they carry, what they are bound to, and what is rejected."""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import replace

import pytest

from omnigraph.engine.feed import feed_tokens
from omnigraph.engine.feed.feed_tokens import (
    TOKEN_BYTES_MAX,
    Binding,
    CommitPosition,
    EntityPosition,
    FeedPosition,
    PollRange,
    make_id_mark,
)
from omnigraph.errors import ChangeCursorRejectedError

FEED = Binding(graph="g", genesis="first", filters="all", branch="main", life="main.0")
COMMIT = Binding(graph="g", genesis="first", filters="all", commit="c7")
AT = CommitPosition(7, "c7")
PLACE = EntityPosition("node", "0123456789abcdef", make_id_mark("ada"))


def test_each_kind_of_token_gives_back_what_it_carries() -> None:
    assert feed_tokens.decode_feed_cursor(feed_tokens.encode_feed_cursor(FEED, AT), FEED) == AT
    assert (
        feed_tokens.decode_commit_page(feed_tokens.encode_commit_page(COMMIT, PLACE), COMMIT)
        == PLACE
    )
    for place in (None, PLACE):
        at = FeedPosition(
            PollRange(CommitPosition(5, "c5"), CommitPosition(9, "c9"), is_caught_up=True),
            AT,
            place,
        )
        assert feed_tokens.decode_feed_page(feed_tokens.encode_feed_page(FEED, at), FEED) == at


def test_a_token_is_json_and_its_checksum_in_base64_without_padding() -> None:
    token = feed_tokens.encode_feed_cursor(FEED, AT)
    data = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
    assert hashlib.sha256(data[:-32]).digest() == data[-32:]
    document = json.loads(data[:-32])
    assert document["v"] == 1
    assert document["kind"] == "feed-cursor"
    assert document["purpose"] == "changes/forward"
    assert "main" not in json.dumps(document), "names are only there as hashes"


def test_every_altered_character_of_a_token_is_noticed() -> None:
    token = feed_tokens.encode_feed_cursor(FEED, AT)
    for at, letter in enumerate(token):
        altered = token[:at] + ("A" if letter != "A" else "B") + token[at + 1 :]
        with pytest.raises(ChangeCursorRejectedError):
            feed_tokens.decode_feed_cursor(altered, FEED)


@pytest.mark.parametrize("text", ["", "x", "===", "é", "not a token", "A" * 5000, "AAAA" * 20])
def test_what_is_no_token_is_rejected(text: str) -> None:
    with pytest.raises(ChangeCursorRejectedError, match=r"^change cursor rejected: "):
        feed_tokens.decode_feed_cursor(text, FEED)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"graph": "h"}, "another graph"),
        ({"genesis": "other"}, "another graph"),
        ({"filters": "some"}, "other filters"),
        ({"branch": "review"}, "another branch"),
        ({"life": "main.1"}, "created again"),
    ],
)
def test_a_cursor_of_something_else_is_rejected(change: dict[str, str], reason: str) -> None:
    token = feed_tokens.encode_feed_cursor(FEED, AT)
    with pytest.raises(ChangeCursorRejectedError, match=reason):
        feed_tokens.decode_feed_cursor(token, replace(FEED, **change))


def test_a_first_commit_that_was_cleaned_up_is_not_compared() -> None:
    token = feed_tokens.encode_feed_cursor(FEED, AT)
    assert feed_tokens.decode_feed_cursor(token, replace(FEED, genesis=None)) == AT


def test_a_token_of_one_kind_is_not_taken_for_another() -> None:
    cursor = feed_tokens.encode_feed_cursor(FEED, AT)
    page = feed_tokens.encode_feed_page(
        FEED, FeedPosition(PollRange(AT, AT, is_caught_up=True), AT, None)
    )
    with pytest.raises(ChangeCursorRejectedError, match="it is a feed-page, where a feed-cursor"):
        feed_tokens.decode_feed_cursor(page, FEED)
    with pytest.raises(ChangeCursorRejectedError, match="it is a feed-cursor"):
        feed_tokens.decode_feed_page(cursor, FEED)
    with pytest.raises(ChangeCursorRejectedError, match="it is a feed-cursor"):
        feed_tokens.decode_commit_page(cursor, COMMIT)
    token = feed_tokens.encode_commit_page(COMMIT, PLACE)
    with pytest.raises(ChangeCursorRejectedError, match="another commit"):
        feed_tokens.decode_commit_page(token, replace(COMMIT, commit="c8"))


def test_a_checksum_does_not_make_a_token_of_any_object() -> None:
    documents: list[object] = [[], {"v": 2}, {"v": 1, "kind": 7, "purpose": "changes/forward"}]
    for document in documents:
        data = json.dumps(document).encode()
        token = base64.urlsafe_b64encode(data + hashlib.sha256(data).digest()).decode()
        with pytest.raises(ChangeCursorRejectedError):
            feed_tokens.decode_feed_cursor(token.rstrip("="), FEED)


@pytest.mark.parametrize("letter", ["a", "é", "\x00", "😀", '"'])
def test_however_long_an_id_is_its_token_is_short(letter: str) -> None:
    for length in (1, 64, 100, 128, 256, 257, 10_000):
        id_ = letter * length
        mark = make_id_mark(id_)
        assert mark.matches(id_)
        assert not mark.matches(id_ + letter)
        assert (mark.hash is None) == (len(id_.encode()) <= 256)
        assert mark.hash is None or len(mark.text.encode()) <= 64
        place = EntityPosition("edge", "0123456789abcdef", mark)
        at = FeedPosition(
            PollRange(AT, CommitPosition(10**18, "c" * 26), is_caught_up=True), AT, place
        )
        token = feed_tokens.encode_feed_page(FEED, at)
        assert len(token) <= TOKEN_BYTES_MAX
        assert feed_tokens.decode_feed_page(token, FEED) == at
