"""Runs over files that are not what they should be: not text, or too much to reject."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from omnigraph.pipelines.ledger.run_ledger import TargetRun
from omnigraph.pipelines.run.pipeline_run import RunOptions, run_pipeline
from spark.pipeline_world import SIMPLE, company, defined, entities, loads

pytestmark = pytest.mark.usefixtures("spark")

QUARANTINE = "mode: append\n    on_error: quarantine\n    rejects: bad\n    max_rejected: 50%"
CSV = SIMPLE.replace("in/*.jsonl", "in/*.csv")
INDENT = "\n          "
MANY = [f"p{number}" for number in range(20)]


def _run(folder: Path, text: str) -> TargetRun:
    (target,) = run_pipeline(defined(folder, text), RunOptions(wait=lambda _: None)).targets
    return target


def _put(folder: Path, name: str, data: bytes) -> Path:
    path = folder / "in" / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    return path


def _places(target: TargetRun) -> list[str]:
    assert target.rejects is not None
    places: list[str] = pq.read_table(target.rejects)["place"].to_pylist()
    return places


@pytest.mark.parametrize(
    ("name", "text", "head", "row"),
    [
        ("a.csv", CSV, b"login\n", b"%s\n"),
        ("a.jsonl", SIMPLE, b"", b'{"login": "%s"}\n'),
    ],
    ids=["csv", "json"],
)
def test_a_byte_that_is_not_text_is_one_bad_record_with_its_line(
    tmp_path: Path, name: str, text: str, head: bytes, row: bytes
) -> None:
    rows = [row % login for login in (b"ada", b"b\xe9", "c\ufffd".encode())]
    path = _put(tmp_path, name, head + b"".join(rows))
    line = 2 + bool(head)
    with company(tmp_path) as graph:
        failed = _run(tmp_path, text)
        assert (failed.status, failed.is_retryable) == ("failed", False)
        assert failed.error is not None
        assert f"{path} line {line}" in failed.error
        assert "bytes that are not text" in failed.error
        assert entities(graph) == {}
        target = _run(tmp_path, text.replace("mode: append", QUARANTINE))
        assert (target.status, target.rejected) == ("succeeded", 1)
        assert _places(target) == [f"{path} line {line}"]
        assert entities(graph) == {"Person": ["ada", "c\ufffd"]}


def test_a_file_is_read_in_the_encoding_of_its_source(tmp_path: Path) -> None:
    _put(tmp_path, "a.csv", "login\nadé\n".encode("windows-1252"))
    _put(tmp_path, "b.jsonl", '{"login": "böb"}\n'.encode("iso-8859-1"))
    with company(tmp_path) as graph:
        for text, encoding in ((CSV, "windows-1252"), (SIMPLE, "iso-8859-1")):
            path = text.split("paths: ")[1].split("}")[0]
            target = _run(tmp_path, text.replace(path, f"{path}, encoding: {encoding}"))
            assert (target.status, target.error) == ("succeeded", None)
        assert entities(graph) == {"Person": ["adé", "böb"]}


def test_a_run_of_which_too_much_is_rejected_fails_and_writes_nothing(tmp_path: Path) -> None:
    rows = [f'{{"login": "{name}", "age": 1}}\n' for name in MANY[:18]] + ["{\n", "}\n"]
    _put(tmp_path, "a.jsonl", "".join(rows).encode())
    lenient = SIMPLE.replace("mode: append", QUARANTINE)
    with company(tmp_path) as graph:
        strict = _run(tmp_path, lenient.replace("50%", "1"))
        assert (strict.status, strict.error_code) == ("failed", "too_many_rejected")
        assert (strict.rejected, strict.commit, strict.is_retryable) == (2, None, False)
        assert len(_places(strict)) == 2
        short = _run(tmp_path, lenient.replace("50%", "50%\n    min_rows: 19"))
        assert (short.status, short.error_code) == ("failed", "too_few_rows")
        assert loads(graph) == []
        # Two of twenty are a tenth.
        usual = _run(tmp_path, lenient.replace("\n    max_rejected: 50%", ""))
        assert (usual.status, usual.rejected) == ("succeeded", 2)
        _put(tmp_path, "a.jsonl", b"{\n" * 20)
        os.utime(tmp_path / "in" / "a.jsonl", (1, 1))
        columns = lenient.replace('"in/*.jsonl"', '"in/*.jsonl", columns: "login string"')
        every = _run(tmp_path, columns.replace("50%", "100%"))
        assert (every.status, every.error_code, every.rejected) == (
            "failed",
            "too_many_rejected",
            20,
        )
        assert len(loads(graph)) == 1


def test_half_of_a_character_is_one_bad_record_with_its_line(tmp_path: Path) -> None:
    rows = [rb"\\ud800", rb"b\ud800", rb"c\ud83d\ude00", rb"d\uDFFF"]
    path = _put(tmp_path, "a.jsonl", b"".join(b'{"login": "%s"}\n' % row for row in rows))
    with company(tmp_path) as graph:
        failed = _run(tmp_path, SIMPLE)
        assert (failed.status, failed.is_retryable) == ("failed", False)
        assert failed.error is not None
        assert f"{path} line 2" in failed.error
        assert "half of a character" in failed.error
        target = _run(tmp_path, SIMPLE.replace("mode: append", QUARANTINE))
        assert (target.status, target.rejected) == ("succeeded", 2)
        assert _places(target) == [f"{path} line 2", f"{path} line 4"]
        assert entities(graph) == {"Person": ["\\ud800", "c\U0001f600"]}


@pytest.mark.parametrize(
    ("data", "options", "place"),
    [
        (b"\n\xff\xfe\n\xff\n", "", "line 2"),
        (b'[{"login": "b\xffd"}]', ", multiline: true", "record 1"),
        (b'[{"login": "ada"}, {"log', ", multiline: true", "record 1"),
        (b"no JSON\n", ", encoding: latin-1", "line 1"),
    ],
)
def test_json_of_which_no_record_can_be_read_is_refused_with_a_place(
    tmp_path: Path, data: bytes, options: str, place: str
) -> None:
    path = _put(tmp_path, "a.jsonl", data)
    with company(tmp_path) as graph:
        text = SIMPLE.replace('"in/*.jsonl"', f'"in/*.jsonl"{options}')
        target = _run(tmp_path, text)
        assert (target.status, target.error_code) == ("failed", "source_refused")
        assert target.error is not None
        assert f"{path} {place}" in target.error
        assert entities(graph) == {}


def test_a_rule_that_no_record_can_pass_writes_nothing(tmp_path: Path) -> None:
    _put(tmp_path, "a.jsonl", b'{"login": "ada"}\n')
    with company(tmp_path) as graph:
        target = _run(
            tmp_path, SIMPLE.replace("type: Person", f'type: Person{INDENT}where: "false"')
        )
        assert (target.status, target.error, target.entities) == ("succeeded", None, {})
        assert entities(graph) == {}
