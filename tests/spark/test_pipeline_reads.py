"""What a run asks of its sources: each record once, and nothing after a refusal."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import obstore
import pytest

from omnigraph.pipelines.run.pipeline_run import RunOptions, run_pipeline
from omnigraph.pipelines.sources.postgres_source import open_cursor
from omnigraph.storage.objects.remote_store import create_s3_client
from spark.pipeline_world import SIMPLE, company, defined, entities
from spark.postgres_server import running
from stores import S3Server

pytestmark = pytest.mark.usefixtures("spark")

FOUR_RULES = """
graphs: {company: company.omni}
sources:
  staff: {kind: postgres, url: '${CRM}', table: staff, key: id, ranges: 2}
into:
  - graph: company
    mode: append
    map:
      nodes:
        - {type: Person, source: staff, set: {handle: login, name: login, level: {value: senior}}}
        - {type: Team, source: staff, distinct: true, set: {slug: team, name: team}}
        - {type: Document, source: staff, set: {slug: login, title: login}}
      edges:
        - {type: MemberOf, source: staff, from: login, to: team}
"""


@pytest.fixture(scope="module")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running(tmp_path_factory.mktemp("pg")) as url:
        yield url


def _ask(url: str, *statements: str) -> str:
    """The first value that the last statement gives."""
    with open_cursor(url) as cursor:
        for statement in statements:
            cursor.execute(statement)
        return str(cursor.fetchall()[0][0])


def test_a_table_is_read_once_for_all_rules(postgres: str, tmp_path: Path) -> None:
    columns = ", ".join(f"c{at} text" for at in range(12))
    _ask(
        postgres,
        f"CREATE TABLE staff (id int PRIMARY KEY, login text, team text, {columns})",
        "INSERT INTO staff (id, login, team) SELECT i, 'p' || i, 't' || i % 3"
        " FROM generate_series(1, 20) i",
        "ALTER SYSTEM SET log_statement = 'all'",
        "SELECT pg_reload_conf()",
    )
    log = Path(_ask(postgres, "SELECT current_setting('data_directory')")).with_name("log")
    with company(tmp_path) as graph:
        run = run_pipeline(defined(tmp_path, FOUR_RULES), RunOptions(environment={"CRM": postgres}))
        assert run.status == "succeeded", run.targets
        assert {name: len(ids) for name, ids in entities(graph).items()} == {
            "Person": 20,
            "Team": 3,
            "Document": 20,
            "MemberOf": 20,
        }
    _ask(postgres, "ALTER SYSTEM RESET log_statement", "SELECT pg_reload_conf()")
    lines = log.read_text().splitlines()
    reads = [line for line in lines if '"staff" WHERE ("id"' in line]
    # One for each range, whatever the number of rules.
    assert len(reads) == 2, reads


def test_a_run_with_a_wrong_password_is_not_tried_again(postgres: str, tmp_path: Path) -> None:
    rules = (
        "('host all guarded 127.0.0.1/32 scram-sha-256'), ('host all postgres 127.0.0.1/32 trust')"
    )
    _ask(postgres, "CREATE ROLE guarded LOGIN PASSWORD 'right'", "SELECT 1")
    place = _ask(postgres, "SELECT current_setting('hba_file')")
    _ask(postgres, f"COPY (VALUES {rules}) TO '{place}'", "SELECT pg_reload_conf()")
    source = "{kind: postgres, url: '${CRM}', query: SELECT 'ada' AS login}"
    text = SIMPLE.replace('{kind: files, paths: "in/*.jsonl"}', source)
    text = text.replace("into:", "retry: {attempts: 3}\ninto:")
    url = postgres.replace("postgres@", "guarded:wrong-word@")
    waits: list[float] = []
    with company(tmp_path) as graph:
        options = RunOptions(environment={"CRM": url}, wait=waits.append)
        run = run_pipeline(defined(tmp_path, text), options)
        (target,) = run.targets
        assert (run.status, target.attempts, waits) == ("failed", 1, [])
        assert "password authentication failed" in (target.error or "")
        assert "wrong-word" not in json.dumps(run.to_json())
        assert entities(graph) == {}


def test_new_files_on_s3_are_read_once(s3: S3Server, tmp_path: Path) -> None:
    bucket = s3.new_bucket()
    store = create_s3_client(f"s3://{bucket}", s3.options)
    options = dict(s3.options) | {
        "aws_secret_access_key": "${SECRET}",
        "aws_access_key_id": "${ID}",
    }
    environment = {
        "SECRET": s3.options["aws_secret_access_key"],
        "ID": s3.options["aws_access_key_id"],
    }
    paths = f"paths: 's3://{bucket}/in/*.jsonl', new_files: true"
    source = f"{{kind: files, {paths}, options: {json.dumps(options)}}}"
    text = SIMPLE.replace('{kind: files, paths: "in/*.jsonl"}', source)
    with company(tmp_path) as graph:
        pipeline = defined(tmp_path, text.replace("mode: append", "mode: merge"))

        def run() -> tuple[str, int]:
            ran = run_pipeline(pipeline, RunOptions(environment=environment))
            return ran.status, ran.rows_read or 0

        obstore.put(store, "in/a.jsonl", b'{"login": "ada"}\n{"login": "bo"}\n')
        assert run() == ("succeeded", 2)
        obstore.put(store, "in/b.jsonl", b'{"login": "cy"}\n')
        assert run() == ("succeeded", 1)
        assert run() == ("succeeded", 0)
        obstore.put(store, "in/a.jsonl", b'{"login": "di"}\n')
        assert run() == ("succeeded", 1)
        assert entities(graph) == {"Person": ["ada", "bo", "cy", "di"]}
        assert len(list(graph.branch().commits())) == 4
    s3.forget(bucket)


def test_a_load_on_spark_prints_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "people.jsonl").write_text('{"handle": "ada", "name": "a", "level": "junior"}\n')
    company(tmp_path).close()
    program = [sys.executable, "-c", "from omnigraph.cli import main; main()"]
    command = ["load", "company.omni", "--data", "people.jsonl", "--type", "Person"]
    done = subprocess.run(
        [*program, *command, "--mode", "append", "--engine", "spark"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stdout + done.stderr
