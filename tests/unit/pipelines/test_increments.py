"""What is new in a source since the last run, without Spark."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pyarrow as pa
import pytest

from omnigraph.errors import PipelineInvalidError, SourceRefusedError
from omnigraph.pipelines.config.definition import (
    FileSource,
    HttpSource,
    Incremental,
    PostgresSource,
    Source,
)
from omnigraph.pipelines.ledger.run_ledger import Ledger
from omnigraph.pipelines.run.run_slot import Slot, SlotRequest, choose_slot
from omnigraph.pipelines.sources import http_increments
from unit.pipelines.definitions import PEOPLE, read

POLL_S = 0.01
_AT = "2026-01-01T00:0{}:00Z"


def _run(folder: Path, source: Source, *, is_full: bool = False, ends: bool = True) -> Slot:
    """The slot of a run that begins, and that ends well."""
    ledger = Ledger.open(str(folder / "ledger"), "people")
    asked = SlotRequest(None, is_full=is_full)
    slot = choose_slot(read(folder, PEOPLE), {"source": source}, ledger, asked)
    if ends and slot.batch is not None:
        ledger.finish_batch(slot.batch, "run")
    return slot


def _files(slot: Slot) -> list[str]:
    state = slot.source_states["source"]
    return [] if state.is_empty else [Path(file.uri).name for file in state.listing.files]


def _write(folder: Path, name: str, *logins: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("".join(json.dumps({"login": each}) + "\n" for each in logins))


def test_only_files_that_are_new_or_changed_are_read(tmp_path: Path) -> None:
    source = FileSource((str(tmp_path / "in"),), is_new_only=True)
    _write(tmp_path / "in", "a.jsonl", "ada")
    _write(tmp_path / "in", "b.jsonl", "bo")
    assert _files(_run(tmp_path, source)) == ["a.jsonl", "b.jsonl"]
    unchanged = _run(tmp_path, source)
    assert unchanged.is_empty
    assert unchanged.batch is None
    _write(tmp_path / "in", "c.jsonl", "cy")
    assert _files(_run(tmp_path, source)) == ["c.jsonl"]
    # A, B, and A again: what was there last counts, not what was ever there.
    for login in ("bob", "bo"):
        _write(tmp_path / "in", "b.jsonl", login)
        assert _files(_run(tmp_path, source)) == ["b.jsonl"]
    (tmp_path / "in" / "a.jsonl").unlink()
    assert _run(tmp_path, source).is_empty
    assert _files(_run(tmp_path, source, is_full=True)) == ["b.jsonl", "c.jsonl"]


def test_files_of_a_run_that_did_not_end_are_read_again_as_they_are_now(tmp_path: Path) -> None:
    source = FileSource((str(tmp_path / "in"),), is_new_only=True)
    _write(tmp_path / "in", "a.jsonl", "bad")
    failed = _run(tmp_path, source, ends=False)
    _write(tmp_path / "in", "a.jsonl", "mended")
    _write(tmp_path / "in", "b.jsonl", "bo")
    again = _run(tmp_path, source)
    assert (again.name, _files(again)) == (failed.name, ["a.jsonl"])
    # It is not the file of the batch: reading it once more does no harm.
    assert _files(_run(tmp_path, source)) == ["a.jsonl", "b.jsonl"]
    assert _run(tmp_path, source).is_empty


class _Service(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        server: Any = self.server
        server.asked.append({k: v[0] for k, v in parse_qs(urlsplit(self.path).query).items()})
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(server.records).encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Nothing of it belongs into the output of a test."""


@pytest.fixture
def service() -> Iterator[Any]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Service) as found:
        server: Any = found
        server.records, server.asked = [], []
        thread = threading.Thread(target=found.serve_forever, args=(POLL_S,), daemon=True)
        thread.start()
        yield server
        found.shutdown()
        thread.join()


def _source(service: Any, **options: Any) -> HttpSource:
    url = f"http://127.0.0.1:{service.server_port}/"
    return HttpSource(url, incremental=Incremental(**{"cursor": "at", **options}))


def _ids(pieces: Sequence[bytes]) -> list[int]:
    tables = [pa.ipc.open_stream(piece).read_all() for piece in pieces]
    return [json.loads(text)["id"] for table in tables for text in table[2].to_pylist()]


def _read(slot: Slot) -> list[int]:
    return _ids(slot.source_states["source"].listing)


def test_a_cursor_takes_what_is_above_the_last_position(tmp_path: Path, service: Any) -> None:
    source = _source(service, param="since")
    service.records = [{"id": 1, "at": _AT.format(1)}, {"id": 2, "at": _AT.format(2)}, {"id": 3}]
    assert _read(_run(tmp_path, source)) == [1, 2, 3]
    assert service.asked == [{}]
    assert _run(tmp_path, source).is_empty
    assert service.asked[-1] == {"since": _AT.format(2)}
    service.records.append({"id": 4, "at": "2026-01-01T01:03:00+01:00"})
    third = _run(tmp_path, source, ends=False)
    assert _read(third) == [4]
    assert third.position["source"]["to"] == "2026-01-01T01:03:00+01:00"
    # A run that is repeated reads as far as the one that did not end.
    service.records.append({"id": 5, "at": _AT.format(5)})
    again = _run(tmp_path, source)
    assert again.name == third.name
    assert _ids(list(http_increments.read_again(source, again.position["source"]))) == [4]
    assert _read(_run(tmp_path, source)) == [5]
    assert _read(_run(tmp_path, source, is_full=True)) == [1, 2, 3, 4, 5]


def test_records_that_appear_late_are_read_within_the_lag(tmp_path: Path, service: Any) -> None:
    source = _source(service, lag_s=120)
    service.records = [{"id": 1, "at": _AT.format(1)}, {"id": 5, "at": _AT.format(5)}]
    assert _read(_run(tmp_path, source)) == [1, 5]
    assert _run(tmp_path, source).is_empty
    service.records += [{"id": 2, "at": _AT.format(2)}, {"id": 4, "at": _AT.format(4)}]
    assert _read(_run(tmp_path, source)) == [5, 4]
    assert _run(tmp_path, source).is_empty


@pytest.mark.parametrize(
    ("records", "options", "message"),
    [
        ([{"id": 1, "at": 7}, {"id": 2, "at": "x"}], {}, "values of 'at' are of several kinds"),
        ([{"id": 1, "at": 7}], {"lag_s": 5}, "'lag' is for times; 'at' is not one"),
    ],
)
def test_a_cursor_that_cannot_be_compared_is_refused(
    tmp_path: Path, service: Any, records: Any, options: Any, message: str
) -> None:
    service.records = records
    source = _source(service, **options)
    with pytest.raises(SourceRefusedError, match=message):
        [_run(tmp_path, source) for _ in range(2)]


def test_a_definition_names_its_cursor(tmp_path: Path) -> None:
    text = PEOPLE.replace(
        "{kind: files, paths: people.jsonl}",
        "{kind: postgres, url: '${URL}', table: t, incremental: {cursor: at, lag: 5m}}",
    )
    source = read(tmp_path, text).sources["source"]
    assert isinstance(source, PostgresSource)
    assert source.incremental == Incremental("at", 300)
    wrong = text.replace("lag: 5m", "param: since, lags: 3").replace(
        "  - graph: company\n", "  - graph: company\n    mode: overwrite\n"
    )
    with pytest.raises(PipelineInvalidError) as caught:
        read(tmp_path, wrong)
    told = str(caught.value)
    assert "unknown field 'lags'" in told
    assert "'param' is for HTTP services" in told
    assert "'mode: overwrite' would leave only what is new in source" in told
