"""The server against its own contract: statuses and documents of generated requests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from faults import http_fuzz
from omnigraph.errors import (
    BranchNotFoundError,
    ChangeFeedGapError,
    CorruptObjectError,
    EmbeddingError,
    InDoubtError,
    OmnigraphError,
    PolicyFailedError,
    PreconditionFailedError,
    StorageFullError,
)
from omnigraph.server.admission_control import AdmissionControl
from omnigraph.server.agent_routes import AgentRoutes
from omnigraph.server.exchange import Call
from omnigraph.server.request_failures import answer_failure, status_of
from omnigraph.server.route_table import build_routes
from omnigraph.server.server_metrics import ServerMetrics
from omnigraph.server.server_settings import ServerSettings
from omnigraph.wire.wire_routes import ROUTES
from served import serve_people

CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance"
RUN = "from schemathesis.cli import schemathesis; schemathesis()"


@pytest.mark.slow
def test_generated_requests_get_what_the_contract_says(tmp_path: Path) -> None:
    config = tmp_path / "schemathesis.toml"
    config.write_text('[parameters]\n"path.graph_id" = "people"\n')
    with serve_people(tmp_path) as running:
        url = f"{running.url}/openapi.json"
        done = subprocess.run(
            [
                *(sys.executable, "-c", RUN, "--config-file", str(config), "run", url),
                *("--checks", f"{CHECKS},response_schema_conformance"),
                *("--phases", "coverage,fuzzing", "--max-examples", "10", "--seed", "1"),
                # The library cannot write JSON lines, and a new schema would end the data.
                *("--exclude-operation-id", "cluster_loadNdjson"),
                *("--exclude-operation-id", "cluster_applySchema"),
            ],
            check=False,
            capture_output=True,
            text=True,
            timeout=280,
        )
    assert done.returncode == 0, done.stdout[-6_000:] + done.stderr[-2_000:]


def test_damaged_requests_show_nothing_of_the_inside(tmp_path: Path) -> None:
    statuses = http_fuzz.run(150, seed=3, folder=tmp_path)
    assert statuses[400] > 20


def test_every_route_of_the_contract_is_served(tmp_path: Path) -> None:
    with serve_people(tmp_path) as running, running.connect() as client:
        metrics = ServerMetrics(lambda: running.serving.state, lambda: 0)
        agents = AgentRoutes(ServerSettings(), AdmissionControl(writes_max=1, bytes_max=1))
        served = {(each.method, each.path) for each in build_routes(metrics, agents)}
        contract = client.get("/openapi.json").json()
    assert served >= {(each.method, each.path) for each in ROUTES}
    flat = {path for path in contract["paths"] if not path.startswith("/graphs/{graph_id}/")}
    own = {"/cluster/plan", "/cluster/deployments", "/cluster/deployments/{deployment_id}"}
    assert flat == {"/healthz", "/graphs", "/session", *own}
    assert contract["openapi"].startswith("3.1")


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (BranchNotFoundError("x"), 404, "not_found"),
        (PreconditionFailedError("main", expected="a", actual="b"), 412, None),
        (ChangeFeedGapError("c"), 410, None),
        (EmbeddingError("the provider is away", reason="unavailable"), 424, None),
        (InDoubtError("who knows /secret/path", commit="c"), 503, None),
        (CorruptObjectError("/secret/path", "it is damaged"), 500, "internal"),
        (StorageFullError("put", "/secret/path", "no room"), 500, "internal"),
        (PolicyFailedError("rule secret/path failed"), 500, "internal"),
        (ValueError("/secret/path"), 500, "internal"),
    ],
)
def test_a_failure_has_its_status_and_shows_no_path(
    tmp_path: Path, error: Exception, status: int, code: str | None
) -> None:
    with serve_people(tmp_path) as running:
        call = Call("GET", b"/", b"", [], "id", running.serving.state)
    answer = answer_failure(call, error)
    document = httpx.Response(answer.status, content=answer.body).json()
    assert (answer.status, document.get("code")) == (status, code)
    assert document["error"]
    assert "secret" not in answer.body.decode()
    if isinstance(error, InDoubtError):
        assert document["recovery_required"] == {"operation_id": "c"}


def test_every_error_of_the_library_has_a_status() -> None:
    def iter_classes(root: type[OmnigraphError]) -> list[type[OmnigraphError]]:
        below = [each for child in root.__subclasses__() for each in iter_classes(child)]
        return [root, *below]

    known = {400, 401, 403, 404, 405, 409, 410, 412, 413, 415, 416, 424, 429, 500, 503}
    assert {status_of(each) for each in iter_classes(OmnigraphError)} <= known
