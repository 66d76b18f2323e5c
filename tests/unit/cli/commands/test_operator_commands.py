"""`login`, `logout`, `profile`, `config`, `alias`, and where verbs find their graph."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import Result

from unit.cli.small_company import ADD, EVERYONE, Answer, Run

CONFIG = """\
operator: {actor: ada}
servers:
  prod: {url: "http://127.0.0.1:9/base"}
clusters:
  lake: {root: roots/lake}
profiles:
  served: {server: prod, default_graph: kb}
  held: {cluster: lake}
  two: {server: prod, store: x}
aliases:
  triage: {server: prod, graph: spike, query: weekly, args: [since], params: {limit: 20}}
"""
# Nothing listens there: a request was made, and went nowhere.
REMOTE = "[Errno 111] Connection refused"
READ = ("query", "-e", EVERYONE)
WRITE = ("mutate", "-e", ADD, "--params", '{"name": "zoe"}')
DIRECT = (
    ("optimize",),
    ("repair",),
    ("cleanup", "--keep", "1"),
    ("lint", "--query", "q.gq"),
    ("check",),
    ("pins",),
    ("index", "status"),
)
DATA = (
    READ,
    WRITE,
    ("explain", "-e", EVERYONE),
    ("snapshot",),
    ("export",),
    ("branch", "list"),
    ("branch", "create", "x"),
    ("commit", "list"),
    ("commit", "show", "main"),
    ("changes", "poll"),
    ("schema", "show"),
    ("blob", "stat", "node", "Person", "ada", "photo"),
    ("history", "Person", "ada"),
    ("tag", "list"),
    ("diff", "main"),
)


@pytest.fixture(autouse=True)
def _without_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("omnigraph.client.http_transport.BACKOFF_S", 0.0)


@pytest.fixture
def home(run: Run, tmp_path: Path) -> Path:
    """The folder of the operator, which the commands of `run` read."""
    del run  # It sets the variable.
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "config.yaml").write_text(CONFIG)
    return tmp_path / "home"


def configure(home: Path, text: str) -> None:
    (home / "config.yaml").write_text(CONFIG + text)


def refused(result: Result, *texts: str) -> None:
    assert result.exit_code == 1, result.output
    assert result.stdout == ""
    for text in texts:
        assert text in result.stderr
    assert not any(line.endswith(" ") for line in result.stderr.splitlines())


@pytest.mark.parametrize("verb", DIRECT, ids=" ".join)
def test_a_direct_verb_takes_no_server(run: Run, home: Path, verb: tuple[str, ...]) -> None:
    (home.parent / "q.gq").write_text(EVERYONE)
    refused(
        run(*verb, "--server", "prod"),
        "is a direct (storage-native) verb and does not take --server (a graph that a server",
        "hint: address it with --store or --cluster",
    )
    refused(run(*verb, "--profile", "served"), "needs direct access to storage", "is a server")
    refused(run(*verb, "--as", "a"), "does not take --as")


@pytest.mark.parametrize("verb", DATA, ids=lambda verb: " ".join(verb[:2]))
def test_a_verb_of_data_reaches_the_address_of_a_server(
    run: Run, home: Path, verb: tuple[str, ...]
) -> None:
    del home
    for flags in (("--server", "prod", "--graph", "kb"), ("--profile", "served")):
        refused(run(*verb, *flags, "--quiet"), "http://127.0.0.1:9/base/graphs/kb")
    refused(run(*verb, "--cluster", "./x"), "is a data verb and does not take --cluster")
    refused(run(*verb, "--profile", "held"), "does not work on a cluster")


@pytest.mark.parametrize("flag", ["--server", "--cluster", "--graph", "--store", "--profile"])
def test_init_and_local_verbs_take_no_address(run: Run, home: Path, flag: str) -> None:
    schema = home / "s.pg"
    schema.write_text("node A { x: I32 }\n")
    refused(run("init", home / "g.omni", "--schema", schema, flag, "x"), f"not take {flag}")
    assert not (home / "g.omni").exists()
    for verb in (("login", "prod"), ("logout", "prod"), ("profile", "list"), ("version",)):
        refused(run(*verb, flag, "x"), f"is a local verb and does not take {flag}")


@pytest.mark.parametrize("flag", ["--server", "--cluster", "--graph"])
def test_a_schema_plan_is_about_storage(run: Run, home: Path, flag: str) -> None:
    schema = home / "s.pg"
    schema.write_text("node A { x: I32 }\n")
    refused(run("schema", "plan", "--schema", schema, flag, "x"), f"does not take {flag}")


def test_an_actor_is_not_given_to_a_server(run: Run, home: Path) -> None:
    del home
    refused(run(*WRITE, "--server", "prod", "--graph", "kb", "--as", "a"), "from the token")


def test_a_write_on_a_server_asks_for_consent_first(run: Run, home: Path) -> None:
    del home
    flags = ("--server", "prod", "--graph", "kb")
    refused(run("branch", "delete", "x", *flags), "--yes")
    asked = run("branch", "delete", "x", *flags, "--yes")
    refused(asked, "omnigraph branch delete → http://127.0.0.1:9/base/graphs/kb (served)", REMOTE)


def test_a_stored_query_is_called_on_a_server_alone(run: Run, home: Path, store: Path) -> None:
    del home
    url = "http://127.0.0.1:9/base/graphs/kb"
    refused(run("query", "weekly", "--profile", "served"), f"{url}: {REMOTE}")
    refused(run("mutate", "weekly", "--profile", "served"), f"{url}: {REMOTE}")
    refused(run("query", "weekly", "--store", store), "needs a server")


def test_a_remote_command_refuses_credentials_that_others_can_read(run: Run, home: Path) -> None:
    run("login", "prod", "--token", "s3cr3t")
    (home / "credentials").chmod(0o644)
    result = run(*READ, "--profile", "served")
    refused(result, "chmod 600")
    assert "s3cr3t" not in result.output


@pytest.mark.on_disk
def test_defaults_select_a_graph_and_its_actor(
    run: Run, answer: Answer, home: Path, store: Path
) -> None:
    refused(run("snapshot"), "no graph is addressed", "--store URI", "--profile NAME")
    configure(home, f"defaults: {{store: {store}}}\n")
    assert answer(*WRITE)["actor_id"] == "ada"
    assert answer(*WRITE[:4], '{"name": "yan"}', "--as", "bob")["actor_id"] == "bob"
    assert answer(*READ)["row_count"] == 5
    refused(run("snapshot", "--graph", "x"), "already one graph")
    configure(home, "defaults: {server: prod, default_graph: kb}\n")
    refused(run("snapshot"), f"http://127.0.0.1:9/base/graphs/kb: {REMOTE}")
    assert run("snapshot", store).exit_code == 0
    people = store.parent / "people.jsonl"
    configure(home, f"defaults: {{store: {store}}}\n")
    assert answer("load", people, "--mode", "merge")["total_entities"] == 4


@pytest.mark.on_disk
def test_a_file_in_the_working_directory_selects_nothing_and_is_named(
    run: Run, home: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = home.parent / "work"
    work.mkdir()
    (work / "omnigraph.yaml").write_text(f"defaults: {{store: {store}}}\n")
    monkeypatch.chdir(work)
    refused(run("snapshot"), "no graph is addressed", "./omnigraph.yaml is not read")
    assert "omnigraph.yaml" not in run("snapshot", store).stderr


@pytest.mark.on_disk
def test_an_ambient_profile_has_no_part_in_verbs_without_a_scope(
    run: Run, home: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del home
    monkeypatch.setenv("OMNIGRAPH_PROFILE", "nope")
    assert run("version").exit_code == 0
    assert run("profile", "list").exit_code == 0
    assert run("snapshot", store).exit_code == 0
    refused(run("snapshot"), "no profile has the name 'nope'", "known are held, served, two")


def test_a_wrong_config_is_refused_and_an_unknown_key_is_not(run: Run, home: Path) -> None:
    configure(home, "defaults: {server: prod, store: g}\n")
    refused(run("snapshot"), f"{home}/config.yaml:12:", "'store' and 'server' exclude each other")
    (home / "config.yaml").write_text("servers: [")
    document = json.loads(run("snapshot", "--json").stdout)
    assert document["reason"] == "config_invalid"
    (home / "config.yaml").write_text("servers: {prod: {url: 'http://h', tls: 1}}\n")
    listed = run("profile", "list")
    assert listed.exit_code == 0
    assert "warning: " in listed.stderr
    assert "servers.prod.tls" in listed.stderr


@pytest.mark.on_disk
def test_output_follows_the_config_and_flags_win(run: Run, home: Path, store: Path) -> None:
    long = "query q() { match { $p: Person } return { $p.name, 'abcdefghijklmnop' as t } limit 1 }"
    long = long.replace("'", '"')
    configure(
        home,
        "defaults: {output: kv, table_max_column_width: 8, table_cell_layout: wrap}\n",
    )
    assert run(*READ, "--store", store).stdout.splitlines()[1] == "row 1"
    assert run(*READ, "--store", store, "--format", "csv").stdout.startswith("name,age\n")
    assert json.loads(run(*READ, "--store", store, "--json").stdout)["row_count"] == 3
    table = ("query", "-e", long, "--store", store, "--format", "table")
    assert [line.partition(" | ")[2] for line in run(*table).stdout.splitlines()[3:]] == [
        "abcdefgh",
        "ijklmnop",
    ]
    assert "abcdefg…" in run(*table, "--no-wrap").stdout
    assert "abcdefghijklmnop" in run(*table, "--max-width", "80").stdout


def test_profiles_are_listed_with_what_they_stand_for(
    answer: Answer, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_PROFILE", "served")
    held, served, two = answer("profile", "list")
    assert served == {
        "name": "served",
        "binding": "server:prod",
        "scope_kind": "server",
        "target": "prod",
        "valid": True,
        "error": None,
        "default_graph": "kb",
        "active": True,
    }
    assert (held["scope_kind"], held["active"]) == ("cluster", False)
    assert (two["valid"], two["binding"]) == (False, None)
    assert "server, store" in two["error"]
    shown = answer("profile", "show")
    assert shown == {
        "name": "served",
        "scope_kind": "server",
        "target": "prod",
        "endpoint": "http://127.0.0.1:9/base",
        "default_graph": "kb",
        "output_format": "table",
    }
    assert answer("profile", "show", "held")["endpoint"] == f"{home}/roots/lake"


def test_without_a_profile_the_defaults_are_shown(run: Run, answer: Answer, home: Path) -> None:
    shown = answer("profile", "show")
    assert (shown["name"], shown["scope_kind"]) == ("(defaults)", "none")
    configure(home, "defaults: {store: g.omni, output: csv}\n")
    shown = answer("profile", "show")
    assert (shown["scope_kind"], shown["output_format"]) == ("store", "csv")
    assert shown["endpoint"] == f"{home}/g.omni"
    refused(run("profile", "show", "nope"), "no profile has the name 'nope'")
    assert run("profile", "show").stdout.startswith("name: (defaults)\n")


def test_a_token_comes_from_standard_input_or_from_the_flag(
    run: Run, answer: Answer, home: Path
) -> None:
    done = run("login", "prod", text="s3cr3t\nrest\n")
    assert done.exit_code == 0, done.output
    path = home / "credentials"
    assert path.read_text() == "[prod]\ntoken = s3cr3t\n"
    assert path.stat().st_mode & 0o777 == 0o600
    assert "s3cr3t" not in done.output
    assert answer("login", "prod", "--token", "t2") == {
        "server": "prod",
        "credentials_path": str(path),
        "declared": True,
    }
    ghost = run("login", "ghost", "--token", "t3", "--json")
    assert json.loads(ghost.stdout)["declared"] is False
    assert "note: " in ghost.stderr
    assert path.read_text() == "[prod]\ntoken = t2\n[ghost]\ntoken = t3\n"
    for _ in range(2):
        assert answer("logout", "prod") == {"server": "prod", "credentials_path": str(path)}
    assert path.read_text() == "[ghost]\ntoken = t3\n"


@pytest.mark.parametrize("text", ["", "\n", "  \nx\n"])
def test_an_empty_token_is_refused(run: Run, home: Path, text: str) -> None:
    refused(run("login", "prod", text=text), "the token is empty")
    assert not (home / "credentials").exists()


def test_config_show_says_what_decided_each_value(
    run: Run, answer: Answer, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("login", "prod", "--token", "s3cr3t")
    monkeypatch.setenv("OMNIGRAPH_PROFILE", "served")
    document = answer("config", "show", "--graph", "other", "--as", "bob")
    found = {each["name"]: (each["value"], each["origin"]) for each in document["settings"]}
    assert document["config_path"] == f"{home}/config.yaml"
    assert found["home"] == (str(home), "$OMNIGRAPH_HOME")
    assert found["profile"] == ("served", "$OMNIGRAPH_PROFILE")
    assert found["address"] == (
        "http://127.0.0.1:9/base/graphs/other",
        f"$OMNIGRAPH_PROFILE, {home}/config.yaml:7",
    )
    assert found["graph"] == ("other", "--graph")
    assert found["actor"] == ("bob", "--as")
    assert found["output"] == ("table", "the default")
    assert found["servers.prod.token"] == ("set", f"[prod] of {home}/credentials")
    shown = run("config", "show", "--origins")
    assert f"{home}/config.yaml:1" in shown.stdout
    assert "s3cr3t" not in shown.output + json.dumps(document)
    assert "config.yaml" not in run("config", "show").stdout


def test_an_alias_binds_its_arguments(run: Run, home: Path) -> None:
    del home
    url = "http://127.0.0.1:9/base/graphs/spike"
    refused(run("alias", "triage", "5"), f"{url}: {REMOTE}")
    refused(run("alias", "triage", "5", "6"), "takes 1 arguments", "its arguments: since")
    refused(run("alias", "nope"), "no alias has the name 'nope'", "known are triage")
    refused(
        run("alias", "triage", "--as", "a", "--server", "s", "--store", "g"),
        "does not take --server, --store, --as",
    )
    both = run("alias", "triage", "--params", "{}", "--params-file", "p.json")
    assert both.exit_code == 2
