"""Which graph is meant: flags, then the environment, then the config."""

from __future__ import annotations

import os
from itertools import combinations
from pathlib import Path

import pytest

import omnigraph
from omnigraph import errors
from omnigraph.operator_config import (
    Address,
    AddressFlags,
    ClusterAddress,
    ServerAddress,
    StoreAddress,
    read_config,
    resolve,
)

CONFIG = """\
operator: {actor: ada}
servers:
  prod: {url: "https://h.example/base/"}
clusters:
  lake: {root: "s3://bucket/lake"}
  near: {root: roots/near}
profiles:
  served: {server: prod, default_graph: kb}
  bare: {server: prod}
  url: {server: "http://127.0.0.1:9"}
  held: {cluster: lake, default_graph: kb}
  path: {cluster: near}
  file: {store: graphs/g.omni}
  none: {default_graph: kb}
  two: {server: prod, store: x}
  full: {store: x, default_graph: kb}
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "config.yaml").write_text(CONFIG)
    return tmp_path


def find(home: Path, *, defaults: str = "", **given: str) -> Address:
    """The address for flags, and for variables, which are written in capitals."""
    if defaults:
        (home / "config.yaml").write_text(f"{CONFIG}defaults: {{{defaults}}}\n")
    environment = {name: value for name, value in given.items() if name.isupper()}
    environment |= {"OMNIGRAPH_HOME": str(home)}
    flags = {name: value for name, value in given.items() if name.islower()}
    return resolve(AddressFlags(**flags), environment, read_config(environment))


def test_a_flag_addresses_a_graph_by_itself(home: Path) -> None:
    assert find(home, store="g") == StoreAddress("g", "--store")
    assert find(home, uri="s3://b/g") == StoreAddress("s3://b/g", "the argument")
    served = find(home, server="prod", graph="a/b")
    assert served == ServerAddress("https://h.example/base/", "a/b", "--server")
    assert str(served) == "https://h.example/base/graphs/a%2Fb"
    assert str(find(home, server="http://127.0.0.1:9/")) == "http://127.0.0.1:9"
    assert find(home, cluster="lake", graph="g") == ClusterAddress(
        "s3://bucket/lake", "g", "--cluster"
    )
    assert find(home, cluster="./elsewhere") == ClusterAddress("./elsewhere", None, "--cluster")


def test_a_profile_gives_the_graph_unless_a_flag_does(home: Path) -> None:
    assert str(find(home, profile="served")) == "https://h.example/base/graphs/kb"
    assert str(find(home, profile="served", graph="x")) == "https://h.example/base/graphs/x"
    assert str(find(home, OMNIGRAPH_PROFILE="bare")) == "https://h.example/base"
    assert str(find(home, OMNIGRAPH_PROFILE="url", graph="g")) == "http://127.0.0.1:9/graphs/g"
    held = find(home, profile="held")
    assert held == ClusterAddress("s3://bucket/lake", "kb", f"--profile, {home}/config.yaml:11")
    assert find(home, profile="served", OMNIGRAPH_PROFILE="held", OMNIGRAPH_GRAPH="g") == find(
        home, profile="served"
    )


def test_a_flag_wins_over_a_profile_and_over_variables(home: Path) -> None:
    given = {"OMNIGRAPH_PROFILE": "held", "OMNIGRAPH_GRAPH": "other"}
    assert find(home, store="g", profile="served", **given) == StoreAddress("g", "--store")
    assert find(home, OMNIGRAPH_GRAPH="g") == StoreAddress("g", "$OMNIGRAPH_GRAPH")
    # An empty variable is one that is not set.
    assert find(home, OMNIGRAPH_GRAPH="", OMNIGRAPH_PROFILE="served") != find(home, store="g")


def test_defaults_come_last(home: Path) -> None:
    served = find(home, defaults="server: prod, default_graph: kb")
    assert (str(served), served.origin) == (
        "https://h.example/base/graphs/kb",
        f"{home}/config.yaml:17",
    )
    assert str(find(home, graph="x")) == "https://h.example/base/graphs/x"
    assert find(home, OMNIGRAPH_GRAPH="g") == StoreAddress("g", "$OMNIGRAPH_GRAPH")
    assert str(find(home, defaults="store: s3://b/g")) == "s3://b/g"


def test_a_relative_path_of_the_file_is_below_its_folder(
    home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    before = [find(home, profile="file"), find(home, profile="path"), find(home, cluster="near")]
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    assert [str(each) for each in before] == [
        f"{home}/graphs/g.omni",
        f"{home}/roots/near",
        f"{home}/roots/near",
    ]
    assert before == [
        find(home, profile="file"),
        find(home, profile="path"),
        find(home, cluster="near"),
    ]
    assert str(find(home, defaults="store: ~/g", HOME="/h")) == "/h/g"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "no graph is addressed"),
        ({"server": "nope"}, "no server has the name 'nope'"),
        ({"server": "ftp://h"}, "not the address of a server"),
        ({"server": "http://"}, "not the address of a server"),
        ({"profile": "nope"}, "no profile has the name 'nope'"),
        ({"OMNIGRAPH_PROFILE": "nope"}, r"'nope' \(\$OMNIGRAPH_PROFILE\)"),
        ({"profile": "none"}, "it needs one of server, cluster and store, and has none"),
        ({"profile": "two"}, "and has server, store"),
        ({"profile": "full"}, "takes no default_graph"),
        ({"store": "g", "graph": "x"}, "already one graph"),
        ({"profile": "file", "graph": "x"}, "already one graph"),
        ({"OMNIGRAPH_GRAPH": "g", "graph": "x"}, "already one graph"),
        ({"store": "https://h/graphs/g"}, "the address of a server"),
        ({"uri": "HTTP://h"}, "the address of a server"),
        ({"OMNIGRAPH_GRAPH": "https://h"}, "the address of a server"),
        ({"store": " "}, "--store is empty"),
        ({"store": "s3://k:s3cr3t@b/g"}, "--store: an address has no user"),
        ({"uri": "https://u:s3cr3t@h/g"}, "the argument: an address has no user"),
        ({"OMNIGRAPH_GRAPH": "s3://k:s3cr3t@b"}, r"\$OMNIGRAPH_GRAPH: an address has no user"),
        ({"cluster": "https://h"}, "the address of a server, and not of a cluster's storage"),
        ({"cluster": "s3://k:s3cr3t@b"}, "--cluster: an address has no user"),
        ({"server": "https://u:s3cr3t@h"}, "not the address of a server: an address has no user"),
        ({"server": "https://h?t=s3cr3t"}, "not the address of a server: .* a host and a path"),
        ({"OMNIGRAPH_GRAPH": "g", "OMNIGRAPH_PROFILE": "served"}, "both select a graph"),
    ],
)
def test_what_selects_no_graph_is_refused(home: Path, given: dict[str, str], message: str) -> None:
    with pytest.raises(errors.AddressError, match=message) as refused:
        find(home, **given)
    assert "s3cr3t" not in str(refused.value)


def test_an_address_without_a_scheme_is_hinted_at(home: Path) -> None:
    with pytest.raises(errors.AddressError, match="no server has the name") as missing:
        find(home, server="127.0.0.1:8080")
    assert "http://" in str(missing.value.hint)


NAMES = ("uri", "store", "server", "cluster")


@pytest.mark.parametrize(("one", "other"), list(combinations(NAMES, 2)))
def test_two_addresses_are_mutually_exclusive(home: Path, one: str, other: str) -> None:
    with pytest.raises(errors.AddressError, match="mutually exclusive"):
        find(home, **{one: "prod", other: "prod"})


def test_nothing_in_the_working_directory_selects_a_graph(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "servers: {prod: {url: 'http://h'}}\ndefaults: {store: /somewhere}\n"
    for name in ("omnigraph.yaml", "config.yaml", ".omnigraph/config.yaml", ".env", "credentials"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    environment = {"OMNIGRAPH_HOME": str(tmp_path / "empty")}
    config = read_config(environment)
    assert (config.default_store, dict(config.servers)) == (None, {})
    with pytest.raises(errors.AddressError, match="no graph is addressed"):
        resolve(AddressFlags(), environment, config)


def test_connect_resolves_as_commands_do(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_HOME", str(home))
    schema = "node Person { name: String @key }"
    omnigraph.create(home / "graphs" / "g.omni", schema=schema).close()
    with omnigraph.connect(profile="file") as graph:
        done = graph.branch().mutate('query q() { insert Person { name: "a" } }')
        assert done.commit is not None
        assert done.commit.actor == "ada"
    monkeypatch.setenv("OMNIGRAPH_PROFILE", "file")
    with omnigraph.connect(actor="bob") as graph:
        done = graph.branch().mutate('query q() { insert Person { name: "b" } }')
        assert done.commit is not None
        assert done.commit.actor == "bob"
    for graph in (
        omnigraph.connect(profile="served"),
        omnigraph.connect(server="prod", graph="kb"),
    ):
        assert graph.uri == "https://h.example/base/graphs/kb"
    assert omnigraph.connect("https://h.example/graphs/kb").uri == "https://h.example/graphs/kb"
    with pytest.raises(errors.AddressError, match=r"store= .* and server= .*exclusive"):
        omnigraph.connect(store="a", server="prod")
    with pytest.raises(errors.AddressError, match="already one graph"):
        omnigraph.connect("https://h.example/graphs/kb", graph="other")
    with pytest.raises(errors.AddressError, match="has no user"):
        omnigraph.connect("https://u:p@h.example/graphs/kb")


def test_connect_warns_of_an_unknown_key(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "config.yaml").write_text("operator: {acter: ada}\n")
    monkeypatch.setenv("OMNIGRAPH_HOME", str(home))
    with (
        pytest.warns(UserWarning, match=r"config\.yaml:1: unknown key operator\.acter"),
        pytest.raises(errors.GraphNotFoundError),
    ):
        omnigraph.connect(os.fspath(home / "nothing"))
