"""Addresses, global flags, and who takes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from unit.cli.small_company import Run

VERBS_OF_A_GRAPH = [
    ("snapshot",),
    ("export",),
    ("pins",),
    ("check",),
    ("commit", "list"),
    ("schema", "show"),
    ("branch", "list"),
    ("query", "-e", "query q() { match { $p: Person } return { $p.name } }"),
    ("mutate", "-e", "query q($x: String) { delete Person where name = $x }"),
    ("blob", "stat", "node", "Person", "ada", "photo"),
    ("history", "Person", "ada"),
    ("blame", "Person", "ada"),
    ("diff", "main", "main"),
    ("tag", "list"),
    ("index", "status"),
    ("cleanup", "--older-than", "9d"),
    ("repair",),
]
# Without its parameter this one fails.
_FAILING = [verb for verb in VERBS_OF_A_GRAPH if verb[0] == "mutate"]


@pytest.mark.parametrize("verb", VERBS_OF_A_GRAPH, ids=" ".join)
def test_no_address_is_an_error_that_lists_the_ways(run: Run, verb: tuple[str, ...]) -> None:
    result = run(*verb)
    assert result.exit_code == 1
    assert "no graph is addressed" in result.stderr
    assert "--store URI" in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize(
    "verb",
    [
        ("query", "-e", "query q() { match { $p: Person } return { $p.name } }"),
        ("blob", "stat", "node", "Person", "ada", "photo"),
        ("commit", "list"),
        ("lint", "--query", "q.gq"),
        ("schema", "plan", "--schema", "s.pg"),
        ("check",),
        ("pins",),
    ],
    ids=" ".join,
)
def test_a_verb_that_writes_nothing_takes_no_actor(run: Run, verb: tuple[str, ...]) -> None:
    result = run("--store", "g", *verb, "--as", "ada")
    assert result.exit_code == 1
    assert f"'{' '.join(verb[:2]) if verb[0] in _GROUPS else verb[0]}' is a " in result.stderr
    assert "does not take --as" in result.stderr


_GROUPS = {"blob", "commit", "schema"}


def test_verbs_without_a_graph_take_no_store(run: Run, folder: Path) -> None:
    for verb in (("version",), ("fmt", folder), ("schema", "check", folder / "s.pg")):
        result = run(*verb, "--store", "g")
        assert result.exit_code == 1
        assert "local verb and does not take --store" in result.stderr
        assert result.stdout == ""


def test_init_takes_its_address_as_its_argument(run: Run, folder: Path) -> None:
    result = run("init", folder / "g", "--schema", folder / "s.pg", "--store", folder / "h")
    assert result.exit_code == 1
    assert "'init' is a direct (storage-native) verb and does not take --store" in result.stderr
    assert not (folder / "g").exists()
    assert not (folder / "h").exists()


def test_two_addresses_are_mutually_exclusive(run: Run) -> None:
    for verb in (("snapshot", "a"), ("branch", "list", "--uri", "a")):
        result = run(*verb, "--store", "b")
        assert result.exit_code == 1
        assert "mutually exclusive" in result.stderr


@pytest.mark.on_disk
@pytest.mark.parametrize(
    "verb", [verb for verb in VERBS_OF_A_GRAPH if verb not in _FAILING], ids=" ".join
)
def test_every_verb_takes_its_graph_by_both_options_and_from_the_environment(
    run: Run, verb: tuple[str, ...], store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = run(*verb, "--store", store)
    assert expected.exit_code == 0, expected.stderr
    assert run(*verb, "--uri", store).stdout == expected.stdout
    assert run("--uri", store, *verb).stdout == expected.stdout
    monkeypatch.setenv("OMNIGRAPH_GRAPH", str(store))
    assert run(*verb).stdout == expected.stdout


@pytest.mark.on_disk
def test_the_command_line_wins_over_the_environment(
    run: Run, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_GRAPH", str(store / "nothing"))
    assert run("snapshot").exit_code == 1
    assert run("snapshot", store).exit_code == 0
    assert run("snapshot", "--uri", store).exit_code == 0


@pytest.mark.parametrize("address", ["http://h/graphs/g", "https://h", "HTTP://h"])
def test_a_server_is_not_an_address(run: Run, address: str, folder: Path) -> None:
    for verb in (
        ("snapshot", address),
        ("snapshot", "--store", address),
        ("branch", "list", "--uri", address),
        ("lint", "--query", folder / "everyone.gq", address),
        ("optimize", address),
        ("init", address, "--schema", folder / "s.pg"),
    ):
        result = run(*verb)
        assert result.exit_code == 1
        assert "--server" in result.stderr
        assert "storage-native" in result.stderr


def test_an_address_without_a_graph_is_named(run: Run, tmp_path: Path) -> None:
    result = run("snapshot", tmp_path / "nothing")
    assert result.exit_code == 1
    assert "no graph at" in result.stderr
    assert "hint: create one" in result.stderr
    assert not (tmp_path / "nothing").exists()


def test_global_flags_may_stand_before_between_and_after(run: Run, store: Path) -> None:
    wanted = run("branch", "list", "--store", store).stdout
    assert wanted == "main\n"
    assert run("--store", store, "branch", "list").stdout == wanted
    assert run("branch", "--store", store, "list").stdout == wanted


def test_a_global_flag_given_twice_must_say_the_same(run: Run, store: Path) -> None:
    assert run("--store", store, "branch", "list", "--store", store).exit_code == 0
    assert run("--store", store, "branch", "list", "--store", "other").exit_code == 2


def test_help_of_every_command_is_short_and_shows_the_global_flags(run: Run) -> None:
    for verb in (("load",), ("branch", "create"), ("query",), ("fmt",)):
        result = run(*verb, "--help")
        assert result.exit_code == 0
        assert "--store" in result.stdout
        assert "--server" in result.stdout
