from __future__ import annotations

from pathlib import Path

import pytest

from omnigraph.errors import SecretMissing, SourceRefused
from omnigraph.pipelines.definition import FileSource, HttpSource
from omnigraph.pipelines.resolving import Resolver
from omnigraph.pipelines.secrets import environment_with, holds_password, resolved
from unit.pipelines.definitions import PEOPLE, read


def test_names_are_replaced_by_their_values() -> None:
    assert resolved("https://${HOST}/${PATH_}", {"HOST": "h", "PATH_": "p"}) == "https://h/p"
    with pytest.raises(SecretMissing, match=r"not set: \$\{A\}, \$\{B\}") as caught:
        resolved("${A}${B}${A}", {"B": ""})
    assert caught.value.names == ("A", "B")


@pytest.mark.parametrize(
    ("address", "holds"),
    [
        ("postgresql://me:word@h/d", True),
        ("postgresql://me:${PW}@h/d", False),
        ("postgresql://me@h/d", False),
        ("${URL}", False),
    ],
)
def test_a_password_in_an_address_is_seen(address: str, holds: bool) -> None:
    assert holds_password(address) is holds


def test_an_env_file_is_below_the_environment(tmp_path: Path) -> None:
    path = tmp_path / ".env"
    path.write_text("# note\nA=one\nexport B = 'two words'\nnonsense\nC=\n")
    found = environment_with({"A": "own"}, path)
    assert found == {"A": "own", "B": "two words", "C": ""}
    with pytest.raises(SourceRefused, match="cannot be read"):
        environment_with({}, tmp_path / "nothing")


def test_a_definition_is_resolved_when_it_is_used(tmp_path: Path) -> None:
    text = (
        PEOPLE.replace("company.omni", "${STORE}")
        .replace(
            "source: {kind: files, paths: people.jsonl}",
            "env_file: .env\n"
            "sources:\n"
            "  here: {kind: files, paths: '${DATA}/x.csv'}\n"
            "  api: {kind: http, url: 'http://h', token: '${TOKEN}', headers: {a: '${H}'}}\n",
        )
        .replace("- type: Person", "- type: Person\n          source: here")
    )
    (tmp_path / ".env").write_text("TOKEN=t\n")
    pipeline = read(tmp_path, text)
    resolver = Resolver.of(pipeline, {"STORE": "g.omni", "DATA": "in", "H": "h"})
    resolver.require_all()
    assert resolver.source("here") == FileSource((str(tmp_path / "in" / "x.csv"),))
    api = resolver.source("api")
    assert isinstance(api, HttpSource)
    assert (api.token, api.headers) == ("t", {"a": "h"})
    assert resolver.graph("company") == resolver.ledger() == str(tmp_path / "g.omni")
    with pytest.raises(SecretMissing) as caught:
        Resolver.of(pipeline, {}).require_all()
    assert caught.value.names == ("STORE", "DATA", "H")
