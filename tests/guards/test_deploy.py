"""The files of `deploy`: parsed, rendered, and compared with what they start.

No container and no cluster of Kubernetes runs here. The chart is rendered by a small reader of the
template language, which knows just what the chart uses.
"""

from __future__ import annotations

import configparser
import json
import re
import shlex
import shutil
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from typer.testing import CliRunner

from omnigraph.cli.app import app
from omnigraph.server.server_command import build_parser
from omnigraph.server.server_settings import ServerSettings

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
CHART = DEPLOY / "helm" / "omnigraph"
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
RELEASE = {"Name": "prod"}
_ACTION = re.compile(r"\{\{-?\s*(.*?)\s*-?\}\}")


def test_the_image_is_built_from_the_wheel_and_runs_as_a_user_without_rights() -> None:
    steps = _read_steps(DEPLOY / "Containerfile")
    stages = [index for index, (word, _) in enumerate(steps) if word == "FROM"]
    build, final = steps[: stages[1]], steps[stages[1] :]
    copied = [name for word, rest in build if word == "COPY" for name in shlex.split(rest)[:-1]]
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    assert all((ROOT / name).exists() for name in copied)
    assert {f"!{name.removeprefix('./')}" for name in copied} <= set(ignored)
    assert any("--constraint constraints.txt" in rest for word, rest in build if word == "RUN")
    assert not [rest for word, rest in final if word in {"COPY", "ADD"}]
    assert any("--no-index" in rest for word, rest in final if word == "RUN")
    found = dict(final)
    assert found["USER"] == "10001:10001"
    assert json.loads(found["ENTRYPOINT"]) == ["omnigraph-server"]
    assert build_parser().parse_args(json.loads(found["CMD"])).bind == "0.0.0.0:8080"
    assert ":latest" not in (DEPLOY / "Containerfile").read_text()


def test_services_of_compose_have_fixed_images_and_no_secret_of_their_own() -> None:
    text = (DEPLOY / "compose" / "compose.yaml").read_text()
    services: dict[str, Any] = yaml.safe_load(text)["services"]
    for name, service in services.items():
        assert re.search(r":[A-Z0-9]*\.?[\dT.Z-]+$", service["image"]), name
        for needed in service.get("depends_on", {}):
            assert needed in services
    for name in ("apply", "server"):
        assert services[name]["image"] == f"omnigraph:{VERSION}"
        assert services[name]["read_only"]
        assert services[name]["cap_drop"] == ["ALL"]
    given = build_parser().parse_args(services["server"]["command"])
    config = yaml.safe_load((DEPLOY / "compose" / "cluster" / "cluster.yaml").read_text())
    assert given.cluster == config["storage"]
    # Passwords and tokens have no default: compose asks for them.
    assert set(re.findall(r"\$\{(\w+):\?", text)) == {
        "OMNIGRAPH_S3_PASSWORD",
        "OMNIGRAPH_ADA_TOKEN",
    }
    assert not re.findall(r"\$\{\w+:-", text)
    assert all(
        each["ports"] == ["127.0.0.1:8080:8080"] for each in services.values() if "ports" in each
    )


def test_the_cluster_of_compose_is_applied_again_and_again(tmp_path: Path) -> None:
    folder = tmp_path / "cluster"
    shutil.copytree(DEPLOY / "compose" / "cluster", folder)
    config = folder / "cluster.yaml"
    config.write_text(config.read_text().replace("s3://omnigraph/lake", "root"))
    services = yaml.safe_load((DEPLOY / "compose" / "compose.yaml").read_text())["services"]
    (script,) = services["apply"]["command"]
    for _ in range(2):
        codes = []
        for line in script.split(";"):
            program, *arguments = shlex.split(line.replace("/etc/omnigraph/cluster", str(folder)))
            assert program == "omnigraph"
            codes.append(CliRunner().invoke(app, arguments).exit_code)
        # What the line ends with is what the service ends with.
        assert codes[-1] == 0
    listed = CliRunner().invoke(
        app, ["queries", "list", "--cluster", str(folder), "--graph", "people"]
    )
    assert "find_person" in listed.output


def test_the_unit_of_systemd_starts_the_server_without_rights() -> None:
    unit = configparser.RawConfigParser(strict=False)
    unit.optionxform = str  # type: ignore[method-assign,assignment]  # names keep their case
    unit.read(DEPLOY / "systemd" / "omnigraph-server.service")
    service = unit["Service"]
    program, *arguments = shlex.split(service["ExecStart"])
    assert program.endswith("/omnigraph-server")
    assert build_parser().parse_args(arguments).bind == "127.0.0.1:8080"
    hardened = ("DynamicUser", "NoNewPrivileges", "PrivateTmp", "ProtectHome", "LockPersonality")
    assert [service[name] for name in hardened] == ["yes"] * len(hardened)
    assert (service["ProtectSystem"], service["CapabilityBoundingSet"]) == ("strict", "")


def test_the_unit_of_a_worker_starts_it_without_rights() -> None:
    unit = configparser.RawConfigParser(strict=False)
    unit.optionxform = str  # type: ignore[method-assign,assignment]  # names keep their case
    unit.read(DEPLOY / "systemd" / "omnigraph-worker.service")
    service = unit["Service"]
    program, *arguments = shlex.split(service["ExecStart"])
    assert program.endswith("/omnigraph")
    assert CliRunner().invoke(app, [*arguments, "--help"]).exit_code == 0
    assert arguments == ["worker", "--cluster", "${OMNIGRAPH_CLUSTER}"]
    assert (service["DynamicUser"], service["ProtectSystem"]) == ("yes", "strict")
    assert "tokens" not in str(dict(service))


def test_the_values_of_the_chart_fit_their_schema() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    values = _read_values()
    jsonschema.validate(values, schema)
    assert set(schema["properties"]) == set(values)
    for wrong in ({"cluster": "relative/path"}, {"replicas": 0}, {"unknown": 1}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(values | wrong, schema)
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["appVersion"] == values["image"]["tag"] == VERSION


def test_the_chart_makes_objects_that_start_the_server_as_nobody_special() -> None:
    objects = _render_chart(
        _read_values() | {"cluster": "s3://bucket/lake", "environmentSecret": "store-keys"}
    )
    assert set(objects) == {"Deployment", "Service", "ServiceAccount", "PodDisruptionBudget"}
    pod = objects["Deployment"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    given = build_parser().parse_args(container["args"])
    assert (given.cluster, given.bind, given.workers) == ("s3://bucket/lake", "0.0.0.0:8080", 1)
    assert pod["securityContext"]["runAsUser"] == 10001
    assert pod["securityContext"]["runAsNonRoot"]
    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert not container["securityContext"]["allowPrivilegeEscalation"]
    assert {"name": "AWS_REGION", "value": "us-east-1"} in container["env"]
    assert container["envFrom"] == [{"secretRef": {"name": "store-keys"}}]
    assert container["resources"]["limits"] == {"memory": "4Gi"}
    wait_s = int(container["lifecycle"]["preStop"]["exec"]["command"][1])
    assert wait_s + ServerSettings().drain_s_max < pod["terminationGracePeriodSeconds"]
    assert not pod["enableServiceLinks"]
    mounted = {each["name"] for each in container["volumeMounts"]}
    assert mounted == {each["name"] for each in pod["volumes"]}
    labels = objects["Deployment"]["spec"]["template"]["metadata"]["labels"]
    for selector in (
        objects["Deployment"]["spec"]["selector"]["matchLabels"],
        objects["Service"]["spec"]["selector"],
        objects["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"],
    ):
        assert selector.items() <= labels.items()
    with pytest.raises(ValueError, match="storage root"):
        _render_chart(_read_values())


def _read_steps(path: Path) -> list[tuple[str, str]]:
    """The instructions of a Containerfile, with lines that go on joined."""
    text = re.sub(r"\\\n\s*", "", path.read_text())
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    joined = re.sub(r"\n\s+", " ", "\n".join(lines)).splitlines()
    return [(line.split(" ", 1)[0], line.split(" ", 1)[1]) for line in joined]


def _read_values() -> dict[str, Any]:
    values: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())
    return values


def _render_chart(values: dict[str, Any]) -> dict[str, Any]:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    names = {"Name": chart["name"], "AppVersion": chart["appVersion"]}
    scope = {"Values": values, "Release": RELEASE, "Chart": names}
    objects = {}
    for path in sorted((CHART / "templates").glob("*.yaml")):
        rendered = yaml.safe_load("\n".join(_render(path.read_text().splitlines(), scope)))
        objects[rendered["kind"]] = rendered
    return objects


def _render(lines: list[str], scope: dict[str, Any]) -> list[str]:
    """Lines with their actions carried out: `if` and `range` stand alone on a line."""
    rendered: list[str] = []
    while lines:
        line, lines = lines[0], lines[1:]
        found = _ACTION.fullmatch(line.strip())
        words = found[1].split() if found else [""]
        if words[0] not in {"if", "range"}:
            rendered.append(_ACTION.sub(lambda each: _evaluate(each[1], scope), line))
            continue
        end = next(i for i, each in enumerate(lines) if each.strip() == "{{- end }}")
        body, lines = lines[:end], lines[end + 1 :]
        value = _find(words[-1], scope)
        if words[0] == "if":
            rendered += _render(body, scope) if value else []
            continue
        for name, item in value.items():
            rendered += _render(body, scope | {words[1].rstrip(","): name, words[2]: item})
    return rendered


def _evaluate(expression: str, scope: dict[str, Any]) -> str:
    head, *pipes = [each.strip() for each in expression.split("|")]
    words = shlex.split(head)
    value = _find(words[-1], scope)
    if words[0] == "required" and not value:
        raise ValueError(words[1])
    text = yaml.safe_dump(value).strip() if words[0] == "toYaml" else str(value)
    for pipe in pipes:
        match pipe.split():
            case ["quote"]:
                text = json.dumps(text)
            case ["nindent", width]:
                text = "".join(f"\n{' ' * int(width)}{line}" for line in text.splitlines())
            case _:
                raise ValueError(pipe)
    return text


def _find(path: str, scope: dict[str, Any]) -> Any:
    """The value of `.Values.a.b` or `$name`; one that is not there is an error."""
    if path.startswith("$"):
        return scope[path]
    value: Any = scope
    for name in path.lstrip(".").split("."):
        value = value[name]
    return value
