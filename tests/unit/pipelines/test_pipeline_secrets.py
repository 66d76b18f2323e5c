from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from omnigraph.config.references import contains_password, hide_values, resolve_text
from omnigraph.errors import OmnigraphError, SecretMissingError, SourceRefusedError
from omnigraph.pipelines.config.definition import FileSource, HttpSource
from omnigraph.pipelines.config.secret_resolver import Resolver, merge_environment
from omnigraph.pipelines.ledger.run_ledger import Ledger
from omnigraph.pipelines.run.pipeline_run import RunOptions, run_pipeline
from unit.pipelines.definitions import PEOPLE, read


def test_names_are_replaced_by_their_values() -> None:
    assert resolve_text("https://${HOST}/${PATH_}", {"HOST": "h", "PATH_": "p"}) == "https://h/p"
    with pytest.raises(SecretMissingError, match=r"not set: \$\{A\}, \$\{B\}") as caught:
        resolve_text("${A}${B}${A}", {"B": ""})
    assert caught.value.names == ("A", "B")


@pytest.mark.parametrize(
    ("address", "holds"),
    [
        ("postgresql://me:word@h/d", True),
        ("postgresql://me:${PW}@h/d", False),
        ("postgresql://me@h/d", False),
        ("${URL}", False),
        ("postgresql://h/d?user=me&password=word", True),
        ("postgresql://h/d?user=me&password=${PW}", False),
        ("host=h user=me password=word", True),
        ("https://h/people?api_key=abc", True),
        ("https://h/people?api-key=${KEY}&sort_key=name&keyword=x", False),
        ("s3://me:word@bucket/graph", True),
        ("host=h password='${PW}'", False),
        ("host=h password = '${PW}' user=me", False),
        ('host=h password="${PW}"', False),
        ("host=h password='a word'", True),
        ("host=h password='${PW} and more'", True),
        ("host=h password=''", False),
        ("https://h/people?key=name", False),
        ("https://h/people?signature_kind=v4&tokens=3&secretary=ada", False),
        ("https://h/people?X-Amz-Signature=abcd", True),
        ("https://h/people?X-Amz-Security-Token=abcd", True),
        ("https://h/people?X-Amz-Signature=${SIGNATURE}", False),
        ("https://h/people?page_token=abc", True),
        ("https://h/people?sv=1&sig=abc", True),
        ("https://h/people?X-Goog-Signature=${A}&accessKeyId=b&secretAccessKey=c", True),
    ],
)
def test_a_password_in_an_address_is_seen(address: str, holds: bool) -> None:
    assert contains_password(address) is holds


def test_an_env_file_is_below_the_environment(tmp_path: Path) -> None:
    path = tmp_path / ".env"
    path.write_text("# note\nA=one\nexport B = 'two words'\nnonsense\nC=\n")
    found = merge_environment({"A": "own"}, path)
    assert found == {"A": "own", "B": "two words", "C": ""}
    with pytest.raises(SourceRefusedError, match="cannot be read"):
        merge_environment({}, tmp_path / "nothing")
    path.write_bytes(b"A=\xff")
    with pytest.raises(SourceRefusedError, match="is not UTF-8"):
        merge_environment({}, path)


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
    resolver = Resolver.from_environment(pipeline, {"STORE": "g.omni", "DATA": "in", "H": "h"})
    resolver.require_secrets()
    assert resolver.resolve_source("here") == FileSource((str(tmp_path / "in" / "x.csv"),))
    api = resolver.resolve_source("api")
    assert isinstance(api, HttpSource)
    assert (api.token, api.headers) == ("t", {"a": "h"})
    assert (
        resolver.resolve_graph("company") == resolver.resolve_ledger() == str(tmp_path / "g.omni")
    )
    with pytest.raises(SecretMissingError) as caught:
        Resolver.from_environment(pipeline, {}).require_secrets()
    assert caught.value.names == ("STORE", "DATA", "H")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("invalid token: 'hunter%2'", "invalid token: '${PW}'"),
        ("GET /hunter%252/x", "GET /${PW}/x"),
        ("postgresql://me:w%40rd@h/d is not there", "${URL} is not there"),
        ("no password w@rd and no w%40rd", "no password ${URL} and no ${URL}"),
        ("Illegal header value b'li\\nne'", "Illegal header value b'${LINE}'"),
        ("h is too short to be hidden", "h is too short to be hidden"),
    ],
)
def test_values_are_hidden_however_they_are_written(text: str, told: str) -> None:
    values = {"PW": "hunter%2", "URL": "postgresql://me:w%40rd@h/d", "LINE": "li\nne", "H": "h"}
    assert hide_values(text, values) == told


def _service(tmp_path: Path) -> Resolver:
    source = "source: {kind: http, url: 'http://127.0.0.1:1/${PW}', headers: {a: 'b ${KEY}'}}"
    text = PEOPLE.replace("source: {kind: files, paths: people.jsonl}", source)
    return Resolver.from_environment(
        read(tmp_path, text), {"PW": "hunter2", "KEY": "cipher", "OTHER": "people"}
    )


def test_texts_for_the_ledger_tell_no_value_of_the_environment(tmp_path: Path) -> None:
    resolver = _service(tmp_path)
    given = {"read": ["hunter2", 7, {"cipher": "a cipher of people"}]}
    assert resolver.hide_secrets(given) == {"read": ["${PW}", 7, {"cipher": "a ${KEY} of people"}]}
    with pytest.raises(SourceRefusedError) as caught, resolver.hide_secrets_in_errors():
        raise SourceRefusedError("no hunter2", hint="not cipher")
    assert (str(caught.value), caught.value.message) == ("no ${PW}", "no ${PW}")
    assert caught.value.hint == "not ${KEY}"


def test_what_is_resolved_is_not_shown(tmp_path: Path) -> None:
    resolver = _service(tmp_path)
    shown = repr((resolver, resolver.resolve_source(next(iter(resolver.pipeline.sources)))))
    assert "hunter2" not in shown
    assert "cipher" not in shown


def test_a_refused_run_tells_no_secret_in_its_error_and_its_ledger(tmp_path: Path) -> None:
    text = PEOPLE.replace("company.omni", "${STORE}")
    environment = {"STORE": "hunter2/company.omni"}
    pipeline = replace(read(tmp_path, text), ledger="ledger")
    with pytest.raises(OmnigraphError) as caught:
        run_pipeline(pipeline, RunOptions(environment=environment))
    assert "hunter2" not in str(caught.value)
    (run,) = Ledger.open(str(tmp_path / "ledger"), pipeline.name).list_runs()
    assert "${STORE}" in (run.error or "")
    assert "hunter2" not in json.dumps(run.to_json())
