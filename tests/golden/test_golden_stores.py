"""Stores of every format are opened, queried, compared, checked and written to, as on their day."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

import omnigraph
from golden.golden_archive import describe, read_expected, unpack
from golden.write_format_2 import MANY
from omnigraph.errors import (
    BranchRefusedError,
    CorruptObjectError,
    FormatTooNewError,
    UnknownFeatureError,
)
from omnigraph.storage.objects import layout
from omnigraph.storage.objects.object_store import open_objects
from omnigraph.versioning.graph_format import CURRENT, GraphFormat, encode_format, read_format

FORMATS = ("format-1", "format-2")
KNOWN = """\
query known($who: String) {
  match { $p: Person { name: $who } $p knows $q }
  return { $q.name }
}
"""


@pytest.fixture(params=FORMATS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return unpack(request.param, tmp_path)


@pytest.fixture
def older(tmp_path: Path) -> Path:
    return unpack("format-1", tmp_path)


def test_a_store_reads_as_on_the_day_it_was_written(store: Path) -> None:
    assert describe(store) == read_expected(store.parent)


def test_a_store_is_whole_to_its_last_byte(store: Path) -> None:
    with omnigraph.open(store) as graph:
        assert list(graph.check(commits_max=None, deep=True).problems) == []


def test_a_store_answers_queries(store: Path) -> None:
    with omnigraph.open(store) as graph:
        for state in ("main", "v1"):
            rows = graph.snapshot(state).query(KNOWN, params={"who": "ada"}).to_pylist()
            assert rows == [{"q.name": "bob"}]
        assert graph.snapshot("v1").count("Person") == MANY + 3


def test_a_store_has_its_history(store: Path) -> None:
    with omnigraph.open(store) as graph:
        changed = {each.id for each in graph.diff("v1", "main")}
        assert changed >= {"ada", "dora", "eve"}
        operations = [version.op for version in graph.branch().history("Person", "ada")]
        assert operations == ["update", "insert"]


def test_a_store_can_be_written_to(store: Path) -> None:
    with omnigraph.open(store, actor="zed") as graph:
        main = graph.branch()
        new = {"type": "Person", "data": {"name": "new"}}
        main.load([new], mode="append")
        graph.create_branch("later", source="v1").load([new], mode="append")
        main.mutate('query q() { delete Person where name = "bob" }')
        main.merge("draft" if "draft" in graph.branches() else "hire/gus")
        graph.tag("then", "v1")
        graph.delete_tag("drafted")
        main.optimize()
        assert sorted(tag.name for tag in graph.tags()) == ["then", "v1"]
        assert list(graph.check(commits_max=None, deep=True).problems) == []


def test_a_store_of_format_2_keeps_blobs_proposals_and_indexes(tmp_path: Path) -> None:
    with omnigraph.open(unpack("format-2", tmp_path)) as graph:
        blob = graph.branch().blob("node", "Document", "d1", "scan")
        assert blob.read() == bytes(range(256)) * 40
        found = {each.title: each.status for each in graph.proposals()}
        assert found == {"Hire gus": "open", "Hire fay": "merged"}
        assert {each.property for each in graph.index_status() if each.covered_rows} >= {
            "@id",
            "title",
        }


def test_an_upgrade_keeps_everything_that_can_be_read(older: Path) -> None:
    expected = read_expected(older.parent)
    with omnigraph.open(older) as graph:
        found = graph.upgrade()
        assert {step.name: step.changed for step in found.steps} == {
            "move_tags": 3,
            "add_digests": 21,
        }
        assert not graph.upgrade().is_needed
    assert describe(older) == expected
    assert read_format(open_objects(str(older))) == CURRENT
    assert not [path for path in (older / "__manifest/tags").rglob("*") if path.is_file()]
    with omnigraph.open(older) as graph:
        report = graph.check(commits_max=None, deep=True)
        assert list(report.problems) == []
        # Tables keep their files, which get digests as they are rewritten.
        assert {notice.where.split("/")[0] for notice in report.notices} == {"t"}


def test_a_dry_run_writes_nothing(older: Path) -> None:
    before = _hash_files(older)
    with omnigraph.open(older) as graph:
        found = graph.upgrade(dry_run=True)
    assert found.is_dry
    assert found.is_needed
    assert [step.name for step in found.steps] == ["move_tags", "add_digests"]
    assert _hash_files(older) == before


def test_an_upgraded_graph_refuses_records_without_digests(older: Path) -> None:
    path = layout.build_record_path("main.0", 3)
    stored = (older / path).read_bytes()
    with omnigraph.open(older) as graph:
        graph.upgrade()
    (older / path).write_bytes(stored)
    with omnigraph.open(older) as graph:
        assert any("no digest" in str(problem) for problem in graph.check().problems)
        with pytest.raises(CorruptObjectError, match="it has no digest"):
            graph.snapshot(3)


def test_an_upgrade_gives_no_digest_to_what_is_damaged(older: Path) -> None:
    (spilled,) = (older / layout.CHANGES).iterdir()
    spilled.write_bytes(spilled.read_bytes()[:-100])
    with omnigraph.open(older) as graph:
        for is_dry in (True, False):
            with pytest.raises(CorruptObjectError, match="is not a change set"):
                graph.upgrade(dry_run=is_dry)
    assert read_format(open_objects(str(older))) == GraphFormat(1)


def test_a_tag_that_has_the_name_of_a_branch_stops_an_upgrade(older: Path) -> None:
    tags = older / layout.TAGS
    (tags / "drafted").rename(tags / "draft")
    with omnigraph.open(older) as graph:
        with pytest.raises(BranchRefusedError, match="'draft'"):
            graph.upgrade()
        graph.delete_branch("draft")
        graph.upgrade()
        assert sorted(tag.name for tag in graph.tags()) == ["draft", "v1"]


def test_a_newer_format_is_refused(store: Path) -> None:
    _state_format(store, GraphFormat(3))
    with pytest.raises(FormatTooNewError, match="has format 3; this program reads up to 2"):
        omnigraph.open(store)


def test_an_unknown_feature_is_refused(store: Path) -> None:
    _state_format(store, GraphFormat(2, CURRENT.features | {"paged-pins", "time-zones"}))
    with pytest.raises(
        UnknownFeatureError, match="does not know: paged-pins, time-zones"
    ) as caught:
        omnigraph.open(store)
    assert caught.value.features == ("paged-pins", "time-zones")
    assert caught.value.hint == "upgrade omnigraph to open this graph"


def test_a_new_graph_has_the_current_format(tmp_path: Path) -> None:
    with omnigraph.create(tmp_path / "new", schema="node Person { name: String @key }") as graph:
        assert not graph.upgrade().is_needed
    assert read_format(open_objects(str(tmp_path / "new"))) == CURRENT


def _state_format(store: Path, stated: GraphFormat) -> None:
    (store / layout.FORMAT).write_bytes(encode_format(stated))


def _hash_files(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }
