"""What is wrong with a configuration: all of it at once, with places and codes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from omnigraph.clusters.cluster_config import read_config
from omnigraph.clusters.cluster_findings import ClusterFinding
from unit.clusters.cluster_folder import QUERIES, write_config


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_config(tmp_path)


def errors(folder: Path) -> list[ClusterFinding]:
    found = read_config(folder)
    assert (found.desired is None) == any(each.severity == "error" for each in found.findings)
    return [each for each in found.findings if each.severity == "error"]


def edit(folder: Path, old: str, new: str, name: str = "cluster.yaml") -> None:
    text = (folder / name).read_text()
    assert old in text
    (folder / name).write_text(text.replace(old, new))


def provide(text: str) -> str:
    return f"providers: {{embedding: {{a: {{api_key: '${{K}}', {text}}}}}}}\ngraphs:"


def allow(entry: str) -> str:
    return f"schema: people.pg\n    external_blobs: {{allow: [{entry}]}}"


# Texts that would end a reader that believes what it is given, or show what it was given.
HOSTILE = [
    ("version: 1", f"version: {'1' * 5_000}", "invalid_cluster_yaml"),
    ("{ file: queries/tasks.gq }", "{ ? [a] : b }", "invalid_cluster_yaml"),
    ("all_tasks:", "? [all_tasks] :", "invalid_cluster_yaml"),
    ("schema: people.pg", allow("{? [a] : b}"), "invalid_cluster_yaml"),
    ("schema: people.pg", allow("{base: 'https://h', scope: [x]}"), "invalid_external_blob_policy"),
    (
        "schema: people.pg",
        allow(f"{{base: 'https://h/{'x' * 70_000}'}}"),
        "invalid_external_blob_base",
    ),
    ("schema: people.pg", allow('{base: "https://h/\\e[2J"}'), "invalid_external_blob_base"),
    ("schema: people.pg", allow("{base: 'https://h/../s3cret'}"), "invalid_external_blob_base"),
    ("schema: people.pg", allow("{base: 'https://s3cret@h/x'}"), "invalid_external_blob_base"),
    ("  front:", f"  {'f' * 129}:", "invalid_resource_id"),
    ("graphs:", "storage: 's3://b/x?key=s3cret'\ngraphs:", "invalid_storage_root"),
    ("graphs:", "storage: 's3://b/x#s3cret'\ngraphs:", "invalid_storage_root"),
    ("graphs:", "state: {backend: s3cret}\ngraphs:", "unsupported_state_backend"),
    ("graphs:", provide("kind: openai, api_key: !s3cret x"), "invalid_cluster_yaml"),
    ("graphs:", provide("kind: openai, provider: mock"), "invalid_embedding_provider"),
    ("graphs:", provide("base_url: 'https://s3cret@h/v1'"), "embedding_api_key_inline"),
    ("graphs:", provide("base_url: 'https://u:${PASSWORD}@h/v1'"), "embedding_api_key_inline"),
    ("graphs:", provide("base_url: 'https://h/v1?key=s3cret'"), "invalid_embedding_provider"),
    ("graphs:", provide("base_url: 'https://h/v1#s3cret'"), "invalid_embedding_provider"),
    ("graphs:", provide("base_url: 'http://[s3cret'"), "invalid_embedding_provider"),
    ("graphs:", provide("base_url: 'file:///etc/passwd'"), "invalid_embedding_provider"),
    (
        "graphs:",
        "providers: {embedding: {a: {kind: s3cret}}}\ngraphs:",
        "invalid_embedding_provider",
    ),
]


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("version: 1", "version: 2", "unsupported_cluster_config_version"),
        ("graphs:", "grphs: {}\ngraphs:", "invalid_cluster_yaml"),
        ("graphs:", "metadata: {name: a, name: b}\ngraphs:", "duplicate_yaml_key"),
        ("graphs:", "bindings: {}\ngraphs:", "future_phase_field"),
        ("graphs:", "metadata: {name: '  '}\ngraphs:", "empty_metadata_name"),
        ("graphs:", "storage: 's3://'\ngraphs:", "invalid_storage_root"),
        ("graphs:", "state: {backend: other}\ngraphs:", "unsupported_state_backend"),
        ("graphs:", "providers: {storage: {}}\ngraphs:", "invalid_cluster_yaml"),
        ("  people:", "  peo_ple:", "invalid_resource_id"),
        ("  tasks:", "  policies:", "invalid_resource_id"),
        ("schema: people.pg", "schema: none.pg", "schema_file_missing"),
        (
            "schema: people.pg",
            "schema: people.pg\n    streaming: {}",
            "removed_streaming_declaration",
        ),
        ("schema: people.pg", "schema: queries/tasks.gq", "schema_parse_error"),
        ("queries/tasks.gq", "queries/none.gq", "query_file_missing"),
        ("all_tasks:", "other:", "query_key_mismatch"),
        ("staff.yaml", "none.yaml", "policy_file_missing"),
        ("[people, tasks]", "[cluster, people]", "policy_mixed_binding_kinds"),
        ("[people, tasks]", "[query.people.find_person]", "wrong_kind_reference"),
        ("[people, tasks]", "[undeclared]", "dangling_graph_reference"),
        ("[people, tasks]", "[]", "policy_missing_applies_to"),
        ("[cluster]", "[people]", "duplicate_policy_binding"),
        (
            "graphs:",
            "providers: {embedding: {a: {kind: x, api_key: '${K}'}}}\ngraphs:",
            "invalid_embedding_provider",
        ),
        (
            "graphs:",
            "providers: {embedding: {a: {kind: openai, api_key: s3cret}}}\ngraphs:",
            "embedding_api_key_inline",
        ),
        (
            "graphs:",
            "providers: {embedding: {a: {kind: openai}}}\ngraphs:",
            "embedding_api_key_required",
        ),
        (
            "schema: people.pg",
            "schema: people.pg\n    embedding_provider: a",
            "dangling_embedding_provider_reference",
        ),
        (
            "schema: people.pg",
            "schema: people.pg\n    external_blobs: {allow: [{base: 'x/..'}]}",
            "invalid_external_blob_base",
        ),
        ("graphs:", "storage: 's3://u:s3cret@b/x'\ngraphs:", "invalid_storage_root"),
        ("graphs:", "storage: 'http://u:s3cret@b/x'\ngraphs:", "invalid_storage_root"),
        ("graphs:", 'storage: "a\\0b"\ngraphs:', "invalid_storage_root"),
        (
            "graphs:",
            "providers: {embedding: {a: {kind: s3cret, api_key: '${K}'}}}\ngraphs:",
            "invalid_embedding_provider",
        ),
        (
            "graphs:",
            "providers: {embedding: {a: {api_key: '${K}', base_url: 'https://u:s3cret@h'}}}\ngraphs:",
            "embedding_api_key_inline",
        ),
        (
            "graphs:",
            "providers: {embedding: {a: {api_key: '${K}', base_url: 'https://h?token=s3cret'}}}\ngraphs:",
            "embedding_api_key_inline",
        ),
        (
            "schema: people.pg",
            "schema: people.pg\n    external_blobs: {allow: [{base: 'https://u:s3cret@h'}]}",
            "invalid_external_blob_base",
        ),
        (
            "schema: people.pg",
            "schema: people.pg\n    external_blobs: {allow: [{base: 'http://['}]}",
            "invalid_external_blob_base",
        ),
        (
            "schema: people.pg",
            "schema: people.pg\n    external_blobs: {allow: [null]}",
            "invalid_external_blob_policy",
        ),
        ("{ file: queries/tasks.gq }", "!!python/name:x {file: y}", "invalid_cluster_yaml"),
        ("{ file: queries/tasks.gq }", "!mine x", "invalid_cluster_yaml"),
        ("{ file: queries/tasks.gq }", "&a [*a]", "invalid_cluster_yaml"),
        ("{ file: queries/tasks.gq }", "[" * 60 + "]" * 60, "invalid_cluster_yaml"),
        ("schema: people.pg", "schema: queries", "schema_file_missing"),
        ("schema: people.pg", "schema: /dev/zero", "schema_file_missing"),
        ("schema: people.pg", 'schema: "a\\0b"', "schema_file_missing"),
        ("queries: queries/people", "queries: ''", "invalid_cluster_yaml"),
        ("queries: queries/people", "queries: [[x]]", "invalid_cluster_yaml"),
        *HOSTILE,
    ],
)
def test_a_mistake_has_a_code_and_a_place(folder: Path, old: str, new: str, code: str) -> None:
    edit(folder, old, new)
    found = errors(folder)
    assert code in {each.code for each in found}
    assert all(each.line for each in found)
    assert "s3cret" not in "".join(map(str, found))


def test_every_mistake_is_reported_at_once(folder: Path) -> None:
    for name in ("people.pg", "queries/tasks.gq", "staff.yaml"):
        (folder / name).unlink()
    assert {each.code for each in errors(folder)} == {
        *("schema_file_missing", "query_file_missing", "policy_file_missing")
    }


def test_queries_are_parsed_and_checked_against_the_desired_schema(folder: Path) -> None:
    other = folder / "queries/people/other.gq"
    other.write_text("query find_person( {")
    assert {each.code for each in errors(folder)} == {"query_parse_error"}
    other.write_text("query q() {\n  match { $p: Person }\n  return { $p.nam }\n}\n")
    (found,) = errors(folder)
    assert found.message == "T6: Person has no property 'nam' (did you mean 'name'?)"
    other.write_text("query wrong() {\n  match { $p: Nothing }\n  return { $p.name }\n}\n")
    (found,) = errors(folder)
    assert (found.code, found.line, found.path) == (
        "query_typecheck_error",
        2,
        "query.people.wrong",
    )
    other.write_text(QUERIES)
    assert {each.code for each in errors(folder)} == {"duplicate_query_name"}


def test_a_folder_registers_every_declaration_and_ignores_other_files(folder: Path) -> None:
    (folder / "queries/people/notes.txt").write_text("query not_this() {}")
    desired = read_config(folder).desired
    assert desired is not None
    assert {name for name in desired.resources if name.startswith("query.people.")} == {
        *("query.people.find_person", "query.people.add_person")
    }


def test_the_digest_follows_content_and_not_layout(folder: Path) -> None:
    def digest() -> str:
        desired = read_config(folder).desired
        assert desired is not None
        return desired.config_digest

    before = digest()
    edit(folder, "graphs:", "# a comment\ngraphs:")
    assert digest() == before
    edit(folder, "$p.name, $p.age", "$p.age, $p.name", "queries/people/people.gq")
    assert digest() != before


def test_a_mock_needs_no_key_and_a_lock_that_is_off_is_a_warning(folder: Path) -> None:
    edit(
        folder,
        "graphs:",
        "state: {lock: false}\nproviders: {embedding: {a: {kind: mock}}}\ngraphs:",
    )
    found = read_config(folder)
    assert found.desired is not None
    assert not found.is_locked
    assert "state_lock_disabled" in {each.code for each in found.findings}
    assert found.desired.resources["provider.embedding.a"].details == {
        "embedding_profile": {"kind": "mock"}
    }


@pytest.mark.parametrize("url", ["${URL}", "https://${HOST}/v1", "http://127.0.0.1:8080/v1"])
def test_the_address_of_a_provider_may_name_variables(folder: Path, url: str) -> None:
    edit(folder, "graphs:", provide(f"base_url: '{url}'"))
    assert errors(folder) == []


def test_a_folder_that_is_not_there_is_said_to_be(tmp_path: Path) -> None:
    assert [each.code for each in read_config(tmp_path / "none").findings] == [
        "config_dir_not_found"
    ]
    assert [each.code for each in read_config(tmp_path).findings] == ["cluster_config_read_error"]


def test_a_file_that_cannot_be_read_is_not_left_out(folder: Path) -> None:
    """A query that is left out of a plan would be deleted by its apply."""
    queries = folder / "queries/people"
    for make, code in (
        (lambda path: path.symlink_to(queries / "nothing"), "query_file_missing"),
        (os.mkfifo, "query_file_missing"),
        (lambda path: path.symlink_to(path), "query_dir_unreadable"),
    ):
        path = queries / "more.gq"
        make(path)
        assert {each.code for each in errors(folder)} == {code}
        path.unlink()
    (queries / "a_folder.gq").mkdir()
    assert errors(folder) == []
    name = os.fsencode(queries) + b"/\xff.gq"
    Path(os.fsdecode(name)).write_text("")
    assert {each.code for each in errors(folder)} == {"query_dir_unreadable"}
    "".join(map(str, errors(folder))).encode()


def test_marks_and_line_ends_of_other_systems_are_read(folder: Path) -> None:
    for path in folder.rglob("*"):
        if path.is_file():
            path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    assert errors(folder) == []


def test_aliases_that_repeat_each_other_end_at_once(folder: Path) -> None:
    lines = ["x0: &x0 [a, a, a, a, a, a, a, a]"]
    lines += [f"x{n}: &x{n} [{', '.join([f'*x{n - 1}'] * 8)}]" for n in range(1, 20)]
    text = (folder / "cluster.yaml").read_text()
    (folder / "cluster.yaml").write_text("\n".join([*lines, text]))
    (found,) = errors(folder)
    assert (found.code, "aliases repeat too much" in found.message) == (
        "invalid_cluster_yaml",
        True,
    )
