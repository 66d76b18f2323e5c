"""OpenLineage events of runs: what they say, and where they go.

The packages of OpenLineage do not ship the JSON Schema of events: `_check_event` is what it says.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from omnigraph.errors import PipelineInvalidError, SecretMissingError, SourceRefusedError
from omnigraph.pipelines.config.definition import (
    DltSource,
    FeedSource,
    FileSource,
    HttpSource,
    KafkaSource,
    PostgresSource,
    PythonSource,
    Source,
    SparkSource,
    SqlSource,
)
from omnigraph.pipelines.reports.dataset_names import iter_source_names
from omnigraph.pipelines.reports.lineage_transport import (
    FileTransport,
    HttpTransport,
    find_transport,
)
from omnigraph.pipelines.reports.report_sender import ReportFailedError
from omnigraph.pipelines.run.pipeline_run import RunOptions, run_pipeline
from unit.pipelines.definitions import PEOPLE, read
from unit.pipelines.http_receiver import open_receiver
from unit.pipelines.reported_runs import run_once

_SPEC = "https://openlineage.io/spec/"
_PARENT = "0190f1b0-0000-7000-8000-000000000001"


def _read_events(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def _check_event(event: Mapping[str, Any]) -> None:
    """What the schema of the specification requires of a run event."""
    assert set(event) == {
        *("eventType", "eventTime", "producer", "schemaURL", "run", "job", "inputs", "outputs")
    }
    assert event["eventType"] in ("START", "COMPLETE", "FAIL", "ABORT")
    assert datetime.fromisoformat(event["eventTime"]).tzinfo is not None
    assert event["schemaURL"] == f"{_SPEC}2-0-2/OpenLineage.json#/$defs/RunEvent"
    uuid.UUID(event["run"]["runId"])
    datasets = [*event["inputs"], *event["outputs"]]
    assert all(each["namespace"] and each["name"] for each in (event["job"], *datasets))
    holders = [event["run"], event["job"], *datasets]
    facets = [facet for each in holders for facet in each["facets"].values()]
    facets += [facet for each in datasets for facet in each.get("outputFacets", {}).values()]
    for facet in facets:
        assert facet["_producer"] == event["producer"]
        pattern = rf"{_SPEC}facets/\d-\d-\d/(\w+)\.json#/\$defs/\1"
        assert re.fullmatch(pattern, facet["_schemaURL"])


def test_a_run_is_a_start_and_an_end_with_its_datasets(tmp_path: Path) -> None:
    text = "lineage: {file: events.jsonl, namespace: crm}\ndescription: People.\n" + PEOPLE
    environment = {"OPENLINEAGE_PARENT_ID": f"dags/daily.load/{_PARENT}"}
    run = run_once(read(tmp_path, text), environment=environment)
    start, end = _read_events(tmp_path / "events.jsonl")
    for event in (start, end):
        _check_event(event)
        assert (event["job"]["namespace"], event["job"]["name"]) == ("crm", "people")
        assert event["job"]["facets"]["documentation"]["description"] == "People."
        (input_,) = event["inputs"]
        assert (input_["namespace"], input_["name"]) == ("file", f"{tmp_path}/people.jsonl")
        (output,) = event["outputs"]
        assert output["namespace"] == "file"
        assert output["name"] == f"{tmp_path}/company.omni/main/Person"
        fields = output["facets"]["schema"]["fields"]
        assert {"name": "handle", "type": "String"} in fields
        assert {"name": "age", "type": "I32?"} in fields
        parent = event["run"]["facets"]["parent"]
        assert (parent["run"]["runId"], parent["job"]["name"]) == (_PARENT, "daily.load")
    assert (start["eventType"], start["eventTime"]) == ("START", run.started_at)
    assert (end["eventType"], end["eventTime"]) == ("COMPLETE", run.ended_at)
    assert start["run"]["runId"] == end["run"]["runId"]
    assert end["outputs"][0]["outputFacets"]["outputStatistics"]["rowCount"] == 1
    assert "outputFacets" not in start["outputs"][0]


def test_runs_that_fail_or_are_stopped_say_so(tmp_path: Path) -> None:
    pipeline = read(tmp_path, "lineage: {file: events.jsonl}\n" + PEOPLE)
    run_once(pipeline, SourceRefusedError("half a file"))
    with pytest.raises(KeyboardInterrupt):
        run_once(pipeline, KeyboardInterrupt())
    text = Path(pipeline.file).read_text().replace("people.jsonl", "'${MISSING_PEOPLE}'")
    with pytest.raises(SecretMissingError):
        run_pipeline(read(tmp_path, text), RunOptions(environment={}))
    events = _read_events(tmp_path / "events.jsonl")
    for each in events:
        _check_event(each)
    kinds = [each["eventType"] for each in events]
    assert kinds == ["START", "FAIL", "START", "ABORT", "FAIL"]
    assert events[1]["run"]["facets"]["errorMessage"]["message"] == "half a file"
    # What could not be resolved is left out.
    assert (events[4]["inputs"], events[4]["job"]["namespace"]) == ([], "default")


def test_events_go_where_the_environment_says(tmp_path: Path) -> None:
    with open_receiver() as service:
        environment = {
            "OPENLINEAGE_URL": service.url,
            "OPENLINEAGE_API_KEY": "abc",
            "OPENLINEAGE_NAMESPACE": "from-env",
        }
        pipeline = read(tmp_path, PEOPLE)
        run = run_once(pipeline, environment=environment)
        service.statuses = [404, 404]
        failed = run_once(pipeline, slot="t", environment=environment)
    assert {path for path, _, _ in service.posts} == {"/api/v1/lineage"}
    assert {headers["Authorization"] for _, headers, _ in service.posts} == {"Bearer abc"}
    events = [json.loads(body) for *_, body in service.posts]
    assert {event["job"]["namespace"] for event in events} == {"from-env"}
    assert (run.status, run.warnings) == ("succeeded", ())
    assert (failed.status, failed.warnings) == (
        "succeeded",
        (f"lineage failed: {service.url} answers 404",) * 2,
    )


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, None),
        ({"OPENLINEAGE_URL": "http://x", "OPENLINEAGE_DISABLED": "True"}, None),
        (
            {"OPENLINEAGE_URL": "http://x/", "OPENLINEAGE_ENDPOINT": "/v2"},
            HttpTransport("http://x/v2"),
        ),
        (
            {
                "OPENLINEAGE__TRANSPORT__TYPE": "http",
                "OPENLINEAGE__TRANSPORT__URL": "http://x",
                "OPENLINEAGE__TRANSPORT__AUTH__TYPE": "api_key",
                "OPENLINEAGE__TRANSPORT__AUTH__API_KEY": "k",
            },
            HttpTransport("http://x/api/v1/lineage", "k"),
        ),
        (
            {
                "OPENLINEAGE__TRANSPORT__TYPE": "http",
                "OPENLINEAGE__TRANSPORT__URL": "http://x",
                "OPENLINEAGE__TRANSPORT__AUTH": '{"type": "api_key", "apiKey": "k"}',
            },
            HttpTransport("http://x/api/v1/lineage", "k"),
        ),
        (
            {"OPENLINEAGE__TRANSPORT": '{"type": "file", "log_file_path": "/e", "append": true}'},
            FileTransport(Path("/e"), is_appended=True),
        ),
        (
            {
                "OPENLINEAGE__TRANSPORT__TYPE": "file",
                "OPENLINEAGE__TRANSPORT__LOG_FILE_PATH": "/events",
            },
            FileTransport(Path("/events"), is_appended=False),
        ),
        (
            {"OPENLINEAGE_CONFIG": "openlineage.yml"},
            HttpTransport("http://y/api/v1/lineage", "z"),
        ),
    ],
)
def test_the_variables_of_openlineage_are_read(
    environment: dict[str, str], expected: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    auth = "auth: {type: api_key, apiKey: z}"
    Path("openlineage.yml").write_text(f"transport: {{type: http, url: 'http://y', {auth}}}\n")
    assert find_transport(None, environment, tmp_path) == expected


def test_a_transport_that_is_not_there_is_named() -> None:
    with pytest.raises(ReportFailedError, match="transport 'kafka' of OpenLineage is not support"):
        find_transport(None, {"OPENLINEAGE__TRANSPORT__TYPE": "kafka"}, Path())


def test_a_file_for_each_event(tmp_path: Path) -> None:
    FileTransport(tmp_path / "event", is_appended=False).send({"eventType": "START"})
    (path,) = tmp_path.iterdir()
    assert re.fullmatch(r"event-\d{8}-\d{6}\.\d{6}\.json", path.name)
    assert json.loads(path.read_text()) == {"eventType": "START"}


@pytest.mark.parametrize(
    ("source", "names"),
    [
        (FileSource(("/in/a.csv", "s3://drop/x/*.csv")), ["file /in/a.csv", "s3://drop x/*.csv"]),
        (
            PostgresSource("postgresql://u:pw@db.example/crm?sslmode=on", table="people"),
            ["postgres://db.example:5432 crm.public.people"],
        ),
        (
            PostgresSource("postgresql://db:6432/crm", table="hr.people"),
            ["postgres://db:6432 crm.hr.people"],
        ),
        (PostgresSource("postgresql://db/crm", query="SELECT 1"), ["postgres://db:5432 crm.it"]),
        (PostgresSource("host=db password=pw", table="people"), ["postgres it"]),
        (HttpSource("https://u:pw@api.example/v1/people?key=1"), ["https://api.example it"]),
        (
            FeedSource("s3://lake/other.omni", types=("Person",)),
            ["s3://lake other.omni/main/Person"],
        ),
        (FeedSource("/g/other.omni", branch="dev"), ["file /g/other.omni/dev"]),
        (
            KafkaSource("k1:9093,k2:9093", ("orders", "people")),
            ["kafka://k1:9093 orders", "kafka://k1:9093 people"],
        ),
        (SparkSource("delta", ("s3://lake/t",)), ["s3://lake t"]),
        (SparkSource("jdbc"), ["spark jdbc/it"]),
        (SqlSource("SELECT 1"), []),
        (PythonSource("m:rows", "/p"), ["python m:rows"]),
        (DltSource("rows", "/p", "m:made"), ["dlt m:made.rows"]),
    ],
)
def test_datasets_have_the_names_of_openlineage(source: Source, names: list[str]) -> None:
    found = [f"{each.namespace} {each.name}" for each in iter_source_names("it", source)]
    assert found == names


@pytest.mark.parametrize(
    ("lineage", "message"),
    [
        ("{url: 'https://x', file: a}", "give either 'url' or 'file'"),
        ("{url: 'https://x', token: abc}", "'token' holds a secret"),
        ("{file: a, token: '${T}'}", "'token' needs 'url'"),
    ],
)
def test_lineage_that_cannot_work_is_a_problem(tmp_path: Path, lineage: str, message: str) -> None:
    with pytest.raises(PipelineInvalidError, match=message):
        read(tmp_path, f"lineage: {lineage}\n{PEOPLE}")
