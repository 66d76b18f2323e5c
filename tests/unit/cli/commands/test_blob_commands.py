from __future__ import annotations

import json
from pathlib import Path

import pytest

from unit.cli.small_company import Answer, Run

PHOTO = ("node", "Person", "ada", "photo")
EMPTY = ("node", "Person", "bob", "photo")
NULL = ("node", "Person", "eve", "photo")


@pytest.mark.parametrize(
    ("flags", "wanted"),
    [
        ((), bytes(range(8))),
        (("--offset", "1", "--length", "4"), bytes([1, 2, 3, 4])),
        (("--offset", "6"), bytes([6, 7])),
        (("--length", "2"), bytes([0, 1])),
        (("--offset", "6", "--length", "99"), bytes([6, 7])),
    ],
)
def test_ranges_of_a_blob(run: Run, store: Path, flags: tuple[str, ...], wanted: bytes) -> None:
    result = run("blob", "get", *PHOTO, "--store", store, *flags)
    assert result.exit_code == 0, result.output
    assert result.stdout_bytes == wanted


def test_an_empty_blob_is_no_bytes(run: Run, store: Path, tmp_path: Path) -> None:
    result = run("blob", "get", *EMPTY, "--store", store)
    assert (result.exit_code, result.stdout_bytes) == (0, b"")
    out = tmp_path / "out.bin"
    assert run("blob", "get", *EMPTY, "--store", store, "--out", out).exit_code == 0
    assert out.read_bytes() == b""


def test_a_blob_is_written_to_a_file(run: Run, store: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.bin"
    result = run("blob", "get", *PHOTO, "--store", store, "--out", out)
    assert (result.exit_code, result.stdout_bytes) == (0, b"")
    assert out.read_bytes() == bytes(range(8))
    nowhere = run("blob", "get", *PHOTO, "--store", store, "--out", tmp_path / "no" / "out.bin")
    assert nowhere.exit_code == 1
    assert "out.bin: No such file or directory" in nowhere.stderr


@pytest.mark.parametrize("flags", [("--length", "0"), ("--offset", str(2**64), "--length", "1")])
def test_an_impossible_range_is_refused_before_the_graph_is_looked_for(
    run: Run, flags: tuple[str, ...]
) -> None:
    result = run("blob", "get", *PHOTO, *flags)
    assert result.exit_code == 1
    assert "no graph is addressed" not in result.stderr
    assert "--length" in result.stderr


@pytest.mark.parametrize(
    ("selector", "flags"),
    [
        (PHOTO, ("--offset", "8")),
        (EMPTY, ("--offset", "1")),
        (NULL, ()),
        (("node", "Person", "nobody", "photo"), ()),
        (("node", "Person", "ada", "name"), ()),
        (("node", "Person", "ada", "nope"), ()),
        (("edge", "Person", "ada", "photo"), ()),
    ],
)
def test_what_cannot_be_read_fails_and_leaves_the_file_alone(
    run: Run, store: Path, selector: tuple[str, ...], flags: tuple[str, ...]
) -> None:
    out = store.parent / "out.bin"
    out.write_bytes(b"before")
    result = run("blob", "get", *selector, "--store", store, "--out", out, *flags)
    assert result.exit_code == 1
    assert "error: " in result.stderr
    assert out.read_bytes() == b"before"


def test_a_blob_has_no_positional_address_and_two_kinds_of_entities(run: Run) -> None:
    assert run("blob", "get", *PHOTO, "g.omni").exit_code == 2
    assert run("blob", "get", "vertex", *PHOTO[1:]).exit_code == 2


def test_stat_is_the_documented_document(run: Run, answer: Answer, store: Path) -> None:
    document = answer("blob", "stat", *PHOTO, "--store", store)
    head = answer("commit", "list", store)["commits"][0]["graph_commit_id"]
    etag = document.pop("etag")
    assert etag
    assert document == {
        "selector": {"entity": "node", "type": "Person", "id": "ada", "property": "photo"},
        "kind": "managed",
        "size": 8,
        "target": {"branch": "main", "resolved_snapshot": head},
    }
    then = answer("blob", "stat", *PHOTO, "--store", store, "--snapshot", head)
    assert then["target"] == {"snapshot": head, "resolved_snapshot": head}
    assert then["etag"] == etag
    assert run("blob", "stat", *PHOTO, "--store", store).stdout == (
        f"node Person ada photo: 8 bytes, etag {etag}\n"
    )


@pytest.mark.parametrize(
    ("selector", "code"),
    [
        (NULL, "not_found"),
        (("node", "Person", "nobody", "photo"), "not_found"),
        (("node", "Person", "ada", "name"), "bad_request"),
        (("node", "Person", "ada", "nope"), "bad_request"),
    ],
)
def test_stat_of_what_is_no_blob_fails(
    run: Run, store: Path, selector: tuple[str, ...], code: str
) -> None:
    result = run("blob", "stat", *selector, "--store", store, "--json")
    assert (result.exit_code, result.stderr) == (1, "")
    assert json.loads(result.stdout)["code"] == code


def test_branch_and_snapshot_exclude_each_other(run: Run, store: Path) -> None:
    flags = ("--branch", "main", "--snapshot", "01H")
    assert run("blob", "get", *PHOTO, "--store", store, *flags).exit_code == 2
