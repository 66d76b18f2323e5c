"""Where lineage events go: what a definition says, else the variables that OpenLineage prescribes.

OPENLINEAGE_DISABLED         `true`: nothing is sent
OPENLINEAGE_CONFIG           a YAML file with a `transport`
OPENLINEAGE__TRANSPORT__…    the members of a `transport`, such as `OPENLINEAGE__TRANSPORT__TYPE`
OPENLINEAGE_URL              an HTTP service, with _ENDPOINT and _API_KEY
OPENLINEAGE_NAMESPACE        the namespace of jobs
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from omnigraph.config.yaml_reader import Findings, decode_node, parse_document, read_text
from omnigraph.pipelines.config.report_settings import LineageSettings
from omnigraph.pipelines.reports.report_sender import ReportFailedError, post_report
from omnigraph.schema.schema_shape import JsonObject

DEFAULT_NAMESPACE: Final = "default"
_ENDPOINT: Final = "api/v1/lineage"
_DYNAMIC: Final = "OPENLINEAGE__TRANSPORT"
# What clients of OpenLineage wait, too.
_TIMEOUT_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class HttpTransport:
    """A service that takes events; its endpoint is part of the address."""

    url: str = field(repr=False)
    token: str | None = field(default=None, repr=False)

    def send(self, event: JsonObject) -> None:
        """Post an event."""
        headers = {"Content-Type": "application/json"}
        if self.token is not None:
            headers["Authorization"] = f"Bearer {self.token}"
        content = json.dumps(event).encode()
        post_report(self.url, content, headers=headers, timeout_s=_TIMEOUT_S)


@dataclass(frozen=True, slots=True)
class FileTransport:
    """A file with an event on each line, or a file for each event, whose name begins so."""

    path: Path
    is_appended: bool

    def send(self, event: JsonObject) -> None:
        """Write an event."""
        now = datetime.now(UTC).strftime("%Y%m%d-%H%M%S.%f")
        path = self.path if self.is_appended else Path(f"{self.path}-{now}.json")
        try:
            # One write of a whole line: those of several processes do not mix.
            with path.open("ab" if self.is_appended else "wb", buffering=0) as file:
                file.write(json.dumps(event).encode() + b"\n")
        except OSError as failure:
            reason = failure.strerror or str(failure)
            raise ReportFailedError(f"{path.name} cannot be written: {reason}") from None


Transport = HttpTransport | FileTransport


def find_transport(
    settings: LineageSettings | None, environment: Mapping[str, str], folder: Path
) -> Transport | None:
    """Where events go; None if they go nowhere. Paths start at a folder."""
    if environment.get("OPENLINEAGE_DISABLED", "").strip().lower() == "true":
        return None
    if settings is not None and settings.url is not None:
        return HttpTransport(_join_endpoint(settings.url, settings.endpoint), settings.token)
    if settings is not None and settings.file is not None:
        return FileTransport(folder / settings.file, is_appended=True)
    config = _read_config_file(environment) or _collect_members(environment)
    if config:
        return _build_transport(config)
    url = environment.get("OPENLINEAGE_URL")
    if not url:
        return None
    endpoint = environment.get("OPENLINEAGE_ENDPOINT")
    return HttpTransport(_join_endpoint(url, endpoint), environment.get("OPENLINEAGE_API_KEY"))


def _read_config_file(environment: Mapping[str, str]) -> dict[str, Any]:  # Any: values of YAML
    name = environment.get("OPENLINEAGE_CONFIG")
    if not name:
        return {}
    findings = Findings(name)
    document = decode_node(parse_document(read_text(Path(name), findings), findings))
    transport = document.get("transport") if isinstance(document, dict) else None
    return _normalize_names(transport) if isinstance(transport, dict) else {}


def _collect_members(environment: Mapping[str, str]) -> dict[str, Any]:  # Any: as above
    """The members of the transport: each variable is one, and may be a whole section as JSON."""
    found: dict[str, Any] = {}
    for name in sorted(environment):
        path = name.split("__")
        if not name.startswith(_DYNAMIC) or not environment[name]:
            continue
        members = _normalize_names({path[-1]: _decode_value(environment[name])})
        if name == _DYNAMIC:
            members = members["transport"] if isinstance(members["transport"], dict) else {}
        elif len(path) > len(_DYNAMIC.split("__")) + 1:
            section = path[2].lower().replace("_", "")
            own = found.get(section)
            members = {section: {**(own if isinstance(own, dict) else {}), **members}}
        found |= members
    return found


def _decode_value(text: str) -> Any:  # Any: JSON
    if not text.strip().startswith(("{", "[")):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


def _normalize_names(value: Any) -> Any:  # Any: values of YAML
    """Members without regard to their spelling: `apiKey`, `api_key` and `API_KEY` are one."""
    if not isinstance(value, dict):
        return value
    return {
        str(name).lower().replace("_", ""): _normalize_names(each) for name, each in value.items()
    }


def _build_transport(config: Mapping[str, Any]) -> Transport:  # Any: values of YAML
    kind = str(config.get("type", "http")).lower()
    if kind in ("http", "async_http") and config.get("url"):
        auth = config.get("auth")
        token = auth.get("apikey") if isinstance(auth, dict) else None
        return HttpTransport(_join_endpoint(str(config["url"]), config.get("endpoint")), token)
    if kind == "file" and config.get("logfilepath"):
        is_appended = str(config.get("append", "")).lower() == "true"
        return FileTransport(Path(str(config["logfilepath"])), is_appended=is_appended)
    raise ReportFailedError(
        f"the transport '{kind}' of OpenLineage is not supported, or is not complete:"
        " use http with url, or file with log_file_path"
    )


def _join_endpoint(url: str, endpoint: str | None) -> str:
    return f"{url.rstrip('/')}/{(endpoint or _ENDPOINT).lstrip('/')}"
