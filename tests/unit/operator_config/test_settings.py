"""The file of the operator: what it may hold, and what is wrong with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnigraph import errors
from omnigraph.operator_config import OperatorConfig, read_config
from omnigraph.operator_config.operator_home import find_home


def read(folder: Path, text: str) -> OperatorConfig:
    (folder / "config.yaml").write_text(text)
    return read_config({"OMNIGRAPH_HOME": str(folder)})


def test_without_a_file_everything_is_a_default(tmp_path: Path) -> None:
    config = read_config({"OMNIGRAPH_HOME": str(tmp_path / "nothing")})
    assert config.warnings == ()
    assert (config.actor, config.output, config.table_width) == (None, None, 80)
    assert config.cell_layout == "truncate"
    for text in ("", "# nothing yet\n", "\n\n"):
        assert read(tmp_path, text).warnings == ()
    assert read(tmp_path, "defaults:\noperator:\n").actor is None


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"OMNIGRAPH_HOME": "/a/b"}, "/a/b"),
        ({"OMNIGRAPH_HOME": "~/x", "HOME": "/h"}, "/h/x"),
        ({"OMNIGRAPH_HOME": "~", "HOME": "/h"}, "/h"),
        ({"OMNIGRAPH_HOME": "", "HOME": "/h"}, "/h/.omnigraph"),
        ({"HOME": "/h"}, "/h/.omnigraph"),
    ],
)
def test_the_folder_is_that_of_the_variable_or_of_the_user(
    environment: dict[str, str], expected: str
) -> None:
    assert find_home(environment) == Path(expected)


def test_every_section_is_read(tmp_path: Path) -> None:
    config = read(
        tmp_path,
        """\
operator: {actor: ada}
servers: {prod: {url: "https://h"}}
clusters: {lake: {root: "s3://b/lake"}}
profiles: {p: {server: prod, default_graph: "010"}}
defaults:
  output: csv
  server: prod
  default_graph: kb
  table_max_column_width: 20
  table_cell_layout: wrap
aliases:
  triage: {server: prod, graph: g, query: q, args: [since], params: {limit: 20}, format: kv}
""",
    )
    assert config.warnings == ()
    assert (config.actor, config.output, config.table_width) == ("ada", "csv", 20)
    assert (config.default_server, config.default_graph) == ("prod", "kb")
    assert config.cell_layout == "wrap"
    assert dict(config.servers) == {"prod": "https://h"}
    assert dict(config.clusters) == {"lake": "s3://b/lake"}
    # Not a number in base eight: scalars are those of YAML 1.2.
    assert config.profiles["p"].default_graph == "010"
    alias = config.aliases["triage"]
    assert (alias.args, dict(alias.params), alias.format) == (("since",), {"limit": 20}, "kv")
    assert config.origin_of("defaults.table_cell_layout") == f"{tmp_path}/config.yaml:10"
    assert config.origin_of("defaults.store") == "the default"


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("servers: {prod: {url: 'http://h', tls: yes}}", ["servers.prod.tls"]),
        ("graphs: {}\ndefaults: {outptu: kv}", ["graphs", "defaults.outptu"]),
        ("aliases: {a: {server: s, query: q, file: x.gq}}", ["aliases.a.file"]),
        ("profiles: {p: {store: g, token: abc}}", ["profiles.p.token"]),
    ],
)
def test_an_unknown_key_is_a_warning_with_its_path(
    tmp_path: Path, text: str, paths: list[str]
) -> None:
    warnings = read(tmp_path, text).warnings
    assert len(warnings) == len(paths)
    for path, warning in zip(paths, warnings, strict=True):
        assert f"unknown key {path} is ignored" in warning
    # What stands under an unknown key may be a secret.
    assert "abc" not in "".join(warnings)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("servers: [", "this is not YAML"),
        ("- a\n", "expects fields"),
        ("servers: 5", "'servers' expects: sections by name"),
        ("servers: {prod: 5}", "servers.prod: expects fields: url"),
        ("servers: {prod: {}}", "servers.prod: 'url' is missing"),
        ("servers: {a: {url: x}, a: {url: y}}", "'a' is given twice"),
        ("defaults: {output: xml}", "'xml' is not a value of output"),
        ("defaults: {table_max_column_width: 0}", "integer of at least 1"),
        ("defaults: {table_cell_layout: cut}", "'cut' is not a value of table_cell_layout"),
        ("defaults: {server: a, store: b}", "'store' and 'server' exclude each other"),
        ("defaults: {store: b, default_graph: g}", "'store' and 'default_graph' exclude"),
        ("aliases: {a: {query: q}}", "'server' is missing"),
        ("servers: {p: {url: 'h:80'}}", r"servers\.p\.url: the address of a service begins with"),
        ("servers: {p: {url: 'ftp://h'}}", "begins with http:// or https://"),
        ("servers: {p: {url: 'http://[::1'}}", "the address cannot be read"),
        ("servers: {p: {url: 'http://h:x'}}", "the address cannot be read"),
        ("servers: {p: {url: 'https://u:s3cr3t@h'}}", "has no user, no password and no token"),
        ("servers: {p: {url: 'https://s3cr3t@h'}}", "has no user, no password and no token"),
        ("servers: {p: {url: 'https://h/?token=s3cr3t'}}", "a host and a path alone"),
        (
            "clusters: {c: {root: 's3://k:s3cr3t@b/x'}}",
            r"clusters\.c\.root: an address has no user",
        ),
        (
            "profiles: {p: {server: 'https://u:s3cr3t@h'}}",
            r"profiles\.p\.server: an address has no",
        ),
        ("profiles: {p: {store: 's3://k:s3cr3t@b/x'}}", r"profiles\.p\.store: an address has no"),
        ("defaults: {store: 's3://k:s3cr3t@b/x'}", r"defaults\.store: an address has no user"),
        (
            "aliases: {a: {server: 'http://u@h', query: q}}",
            r"aliases\.a\.server: an address has no",
        ),
        ("defaults: {table_max_column_width: %s}" % ("9" * 5000), "integer of at least 1"),
        ("aliases: {a: {server: p, query: q, params: {? [x] : 1}}}", "a name must be a text"),
    ],
)
def test_a_wrong_file_is_refused_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(errors.ConfigInvalidError, match=message) as refused:
        read(tmp_path, text)
    assert f"{tmp_path}/config.yaml:1:" in refused.value.message
    assert "s3cr3t" not in refused.value.message


def test_all_problems_are_reported_at_once(tmp_path: Path) -> None:
    text = "servers: {a: {}}\ndefaults: {output: xml, server: a, store: b}\n"
    with pytest.raises(errors.ConfigInvalidError) as refused:
        read(tmp_path, text)
    assert [each.line for each in refused.value.problems] == [1, 2, 2]
