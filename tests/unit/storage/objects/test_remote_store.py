"""What an answer of S3 means, or the lack of one; the server here says whatever a test wants."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from omnigraph.errors import StorageError, StorageRefusedError, StorageUnknownError
from omnigraph.storage import Objects, open_objects
from omnigraph.storage.objects.remote_store import CONFLICT_TRIES_MAX
from stores import S3Server

# A server looks so often whether it should end.
POLL_S = 0.01

DROP, STALL = "drop", "stall"
SECRET = "a-secret-key"  # noqa: S105 (nobody's)


@dataclass
class Scripted:
    """A server that gives the scripted answers in order, the last one for ever."""

    answers: list[int | str] = field(default_factory=list)
    requests: list[tuple[str, str, str | None]] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)
    port: int = 0

    def open(self, **options: str) -> Objects:
        return open_objects(
            "s3://bucket/root",
            options={
                "aws_endpoint": f"http://127.0.0.1:{self.port}",
                "aws_access_key_id": "test",
                "aws_secret_access_key": SECRET,
                "aws_region": "us-east-1",
                "allow_http": "true",
                **options,
            },
        )


@pytest.fixture
def scripted() -> Iterator[Scripted]:
    script = Scripted()

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("content-length", 0)))
            script.requests.append((self.command, self.path, self.headers.get("if-none-match")))
            answer = script.answers.pop(0) if len(script.answers) > 1 else script.answers[0]
            if answer == STALL:
                script.released.wait(10)
            if isinstance(answer, str):
                return
            body = b"" if answer < 300 else b"<Error><Code>Scripted</Code></Error>"
            self.send_response(answer)
            self.send_header("ETag", '"1"')
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_PUT = do_POST = answer  # noqa: N815 (names of the base class)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    script.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, args=(POLL_S,), daemon=True)
    thread.start()
    yield script
    script.released.set()
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_new_object_is_put_with_the_condition_that_none_matches(scripted: Scripted) -> None:
    scripted.answers = [200]
    assert scripted.open().put_new("a b", b"1") is True
    assert scripted.requests == [("PUT", "/bucket/root/a%20b", "*")]


def test_a_failed_precondition_is_a_clean_no(scripted: Scripted) -> None:
    scripted.answers = [412]
    assert scripted.open().put_new("a", b"1") is False
    assert len(scripted.requests) == 1


@pytest.mark.parametrize(("last", "is_created"), [(200, True), (412, False)])
def test_a_conflict_with_a_concurrent_put_is_tried_again(
    scripted: Scripted, last: int, is_created: bool
) -> None:
    scripted.answers = [409, 409, last]
    assert scripted.open().put_new("a", b"1") is is_created
    assert len(scripted.requests) == 3


def test_a_conflict_that_never_ends_is_an_error_that_did_not_happen(scripted: Scripted) -> None:
    scripted.answers = [409]
    with pytest.raises(StorageError) as caught:
        scripted.open().put_new("a", b"1")
    assert type(caught.value) is StorageError
    assert len(scripted.requests) == CONFLICT_TRIES_MAX


@pytest.mark.parametrize("answer", [500, 502, 503, DROP])
def test_a_new_put_without_a_clear_answer_is_unknown_and_never_repeated(
    scripted: Scripted, answer: int | str
) -> None:
    # A client that repeated it would be told 412 about its own object.
    scripted.answers = [answer, 412]
    with pytest.raises(StorageUnknownError) as caught:
        scripted.open().put_new("a", b"1")
    assert (caught.value.operation, caught.value.path) == ("put_new", "s3://bucket/root/a")
    assert caught.value.retryable
    assert len(scripted.requests) == 1


def test_a_new_put_that_takes_too_long_is_unknown(scripted: Scripted) -> None:
    scripted.answers = [STALL]
    with pytest.raises(StorageUnknownError):
        scripted.open(timeout="200ms").put_new("a", b"1")


def test_a_replacing_put_and_a_read_are_repeated(scripted: Scripted) -> None:
    scripted.answers = [503, DROP, 200]
    scripted.open().put("a", b"1")
    assert [method for method, _, _ in scripted.requests] == ["PUT"] * 3
    scripted.answers = [503, 404]
    assert scripted.open().get("a") is None


@pytest.mark.parametrize("answer", [401, 403])
def test_a_denied_request_is_refused_and_tells_no_secret(scripted: Scripted, answer: int) -> None:
    scripted.answers = [answer]
    objects = scripted.open()
    for attempt in (
        lambda: objects.put_new("a", b"1"),
        lambda: objects.put("a", b"1"),
        lambda: objects.get("a"),
        lambda: list(objects.list("a")),
        lambda: objects.delete(["a", "b"]),
    ):
        with pytest.raises(StorageError) as caught:
            attempt()
        assert isinstance(caught.value, StorageRefusedError)
        assert "\n" not in str(caught.value)
        assert SECRET not in str(caught.value)


def test_a_bad_request_did_not_happen(scripted: Scripted) -> None:
    scripted.answers = [400]
    with pytest.raises(StorageError) as caught:
        scripted.open().put_new("a", b"1")
    assert type(caught.value) is StorageError


def test_a_server_that_is_not_there_was_not_written_to() -> None:
    unused = ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    unused.server_close()
    objects = Scripted(port=unused.server_port).open()
    with pytest.raises(StorageError) as caught:
        objects.put_new("a", b"1")
    assert type(caught.value) is StorageError


def test_a_missing_bucket_is_refused_and_never_an_absent_object(s3: S3Server) -> None:
    objects = open_objects("s3://no-such-bucket/graph", options=s3.options)
    for attempt in (
        lambda: objects.get("a"),
        lambda: objects.put_new("a", b"1"),
        lambda: objects.put("a", b"1"),
        lambda: list(objects.list("")),
        lambda: objects.delete(["a"]),
    ):
        with pytest.raises(StorageRefusedError, match="no-such-bucket"):
            attempt()


def test_the_options_may_come_from_the_environment(
    s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key, value in s3.options.items():
        if key.startswith("aws_"):
            monkeypatch.setenv(key.upper(), value)
    objects = open_objects(f"s3://{s3.new_bucket()}", options={"allow_http": "true"})
    assert objects.put_new("a/b", b"1")
    assert [entry.path for entry in objects.list("")] == ["a/b"]


def test_two_roots_in_one_bucket_do_not_see_each_other(s3: S3Server) -> None:
    bucket = s3.new_bucket()
    one, two = (open_objects(f"s3://{bucket}/{name}/", options=s3.options) for name in ("a", "ab"))
    one.put_new("x", b"1")
    two.put_new("y", b"2")
    assert [entry.path for entry in one.list("")] == ["x"]
    assert two.get("x") is None
    assert one.uri == f"s3://{bucket}/a"


def test_an_unknown_option_is_refused_by_name() -> None:
    with pytest.raises(StorageRefusedError, match="aws_nonsense"):
        open_objects("s3://bucket", options={"aws_nonsense": "1"})
