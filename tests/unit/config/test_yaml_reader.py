"""Strict YAML: scalars of 1.2, every problem at once with its place, and nothing ignored."""

from __future__ import annotations

import math
import os
from pathlib import Path

import pytest

from omnigraph.config.bounded_files import FILE_BYTES_MAX
from omnigraph.config.yaml_reader import (
    FieldKind,
    FieldSpec,
    Findings,
    SectionSchema,
    decode_node,
    parse_document,
    read_section,
    read_text,
)
from omnigraph.errors import ConfigInvalidError

SHAPE = SectionSchema(
    "thing",
    "A thing.",
    (
        FieldSpec("name", FieldKind.TEXT, "Its name.", True),
        FieldSpec("size", FieldKind.INTEGER, "Its size."),
        FieldSpec("shown", FieldKind.BOOLEAN, "Whether it is shown."),
    ),
)


def _decode(text: str) -> object:
    return decode_node(parse_document(text, Findings("a.yaml")))


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("yes", "yes"),
        ("no", "no"),
        ("on", "on"),
        ("010", 10),
        ("0o10", 8),
        ("0x1F", 31),
        ("12:30", "12:30"),
        ("1_000", "1_000"),
        ("2026-01-02", "2026-01-02"),
        ("true", True),
        ("False", False),
        ("~", None),
        ("", None),
        ("null", None),
        ("-7", -7),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("-.inf", -math.inf),
        ("'true'", "true"),
        ("=", "="),
        ("9" * 5_000, "9" * 5_000),
    ],
)
def test_plain_scalars_are_those_of_yaml_1_2(written: str, value: object) -> None:
    decoded = _decode(f"a: {written}")
    assert decoded == {"a": value}
    assert type(decoded["a"]) is type(value)


def test_every_problem_is_listed_with_file_line_column_code_and_path() -> None:
    findings = Findings("a.yaml")
    text = "nmae: x\nsize: big\nshown: yes\nsize: 3\n"
    read_section(parse_document(text, findings), SHAPE, findings)
    with pytest.raises(ConfigInvalidError) as caught:
        findings.raise_if_any()
    told = [(each.line, each.column, each.code) for each in caught.value.problems]
    assert told == [
        (1, 1, "unknown_field"),
        (1, 1, "missing_field"),
        (2, 7, "invalid_value"),
        (3, 8, "invalid_value"),
        (4, 1, "duplicate_key"),
    ]
    first = caught.value.problems[0]
    assert str(first) == ("a.yaml:1:1: thing: unknown field 'nmae' (did you mean 'name'?), at nmae")
    assert first.to_json()["code"] == "unknown_field"


def test_a_name_that_comes_twice_is_found_at_any_depth() -> None:
    findings = Findings("a.yaml")
    parse_document("a:\n  - b: {c: 1, d: 2, c: 3}\n  - &x {e: 1, e: 2}\n  - *x\n", findings)
    told = [(each.line, each.message, each.code) for each in findings.problems]
    assert sorted(told) == [
        (2, "'c' is given twice", "duplicate_key"),
        (3, "'e' is given twice", "duplicate_key"),
    ]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", (1, 1)),
        ("a: [", (1, 5)),
        ("a: 1\nb: }\n", (2, 4)),
        ("a: 1\n---\nb: 2\n", (2, 1)),
        ("[" * 100_000, (1, 201)),
        ("a: 1\nb: \x00", (2, 4)),
    ],
    ids=["empty", "open", "brace", "two documents", "deep", "control"],
)
def test_what_is_not_one_yaml_document_is_refused_at_its_place(
    text: str, place: tuple[int, int]
) -> None:
    with pytest.raises(ConfigInvalidError) as caught:
        parse_document(text, Findings("a.yaml"))
    (problem,) = caught.value.problems
    assert (problem.line, problem.column) == place
    assert problem.code == "invalid_yaml"


def test_a_file_that_is_not_there_or_not_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_bytes("a: é\nb: é".encode() + b"\xff\xfe")
    for name, reason, place in (
        ("a.yaml", "not UTF-8 text: byte 0xff", (2, 5)),
        ("b.yaml", "cannot be read", (1, 1)),
    ):
        with pytest.raises(ConfigInvalidError, match=reason) as caught:
            read_text(tmp_path / name, Findings(name))
        (problem,) = caught.value.problems
        assert (problem.code, problem.line, problem.column) == ("unreadable_file", *place)


@pytest.mark.parametrize("value", ["''", "[x]", "{x: y}"])
def test_a_tag_of_a_program_is_a_problem_and_never_followed(value: str) -> None:
    findings = Findings("a.yaml")
    node = parse_document(f"a: !!python/name:os.system {value}", findings)
    message = findings.problems[0].message
    assert message == "a tag is not known here: put a text that begins with '!' in quotes"
    assert decode_node(node)["a"] in ("", ["x"], {"x": "y"})


def test_a_name_that_is_not_a_text_is_reported_and_left_out() -> None:
    findings = Findings("a.yaml")
    node = parse_document("a: {? [x] : 1, b: 2}\n", findings)
    assert [each.message for each in findings.problems] == ["a name must be a text"]
    assert decode_node(node) == {"a": {"b": 2}}


def test_a_pipe_a_folder_and_a_file_of_data_are_refused_at_once(tmp_path: Path) -> None:
    pipe, large = tmp_path / "pipe.yaml", tmp_path / "large.yaml"
    os.mkfifo(pipe)
    with large.open("wb") as file:
        file.truncate(FILE_BYTES_MAX + 1)
    for path, reason in (
        (pipe, "not a regular file"),
        (tmp_path, "not a regular file"),
        (large, "more than 16 MiB"),
        (tmp_path / "none.yaml", "No such file"),
        (tmp_path / "a\0b", "null byte"),
    ):
        with pytest.raises(ConfigInvalidError, match=reason) as refused:
            read_text(path, Findings(str(path)))
        assert refused.value.problems[0].code == "unreadable_file"


def test_marks_of_the_byte_order_and_of_other_line_ends_are_not_content(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_bytes(b"\xef\xbb\xbfversion: 1\r\nname: x\r\n")
    findings = Findings(str(path))
    assert decode_node(parse_document(read_text(path, findings), findings)) == {
        "version": 1,
        "name": "x",
    }
