"""The cluster of a server: a folder of configuration, planned and applied there."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from omnigraph.client.http_transport import Call, HttpTransport
from omnigraph.config.bounded_files import describe_failure, read_file
from omnigraph.errors import InvalidArgumentError

JsonObject = dict[str, Any]  # Any: a JSON document
# What a configuration is written in. A file of secrets or of data beside it is not sent.
SUFFIXES: Final = frozenset({".yaml", ".yml", ".pg", ".gq"})
# Where a cluster keeps its state, and the end of the names of graphs.
_STATE_FOLDER: Final = "__cluster"
_GRAPH_SUFFIX: Final = ".omni"
FILES_MAX: Final = 5_000


class ServedCluster(AbstractContextManager["ServedCluster"]):
    """Plans and applies configurations at a server, as the policy that is applied there allows."""

    def __init__(self, url: str, token: str | None) -> None:
        self._transport = HttpTransport(url, token)

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._transport.close()

    def plan(self, folder: str | os.PathLike[str]) -> JsonObject:
        """What an apply of a folder would change; nothing is written."""
        files = dict(iter_configuration(Path(folder)))
        return self._post(("cluster", "plan"), {"files": files}, is_write=False)

    def deploy(self, folder: str | os.PathLike[str], *, plan_id: str | None = None) -> JsonObject:
        """Bring a folder into force, only by the plan of that id if one is given."""
        document: JsonObject = {"files": dict(iter_configuration(Path(folder)))}
        if plan_id is not None:
            document["plan_id"] = plan_id
        return self._post(("cluster", "deployments"), document, is_write=True)

    def list_deployments(self) -> list[JsonObject]:
        """What was applied, newest first."""
        found: list[JsonObject] = self._transport.get("cluster", "deployments")["deployments"]
        return found

    def read_deployment(self, deployment_id: str) -> JsonObject:
        """One deployment."""
        found: JsonObject = self._transport.get("cluster", "deployments", deployment_id)
        return found

    def _post(
        self, segments: tuple[str, ...], document: Mapping[str, Any], *, is_write: bool
    ) -> JsonObject:
        call = Call("POST", segments, document=document, is_write=is_write)
        found: JsonObject = self._transport.send(call).read_json()
        return found


def iter_configuration(folder: Path) -> Iterator[tuple[str, str]]:
    """The files of a configuration by their paths below its folder, with their texts.

    Names that begin with a dot are left out, and so is what a storage root in the folder holds.
    """
    count = 0
    for place, names, files in os.walk(folder):
        names[:] = sorted(filter(_is_configuration, names))
        for name in sorted(files):
            path = Path(place, name)
            if name.startswith(".") or path.suffix not in SUFFIXES:
                continue
            count += 1
            if count > FILES_MAX:
                message = f"{folder} holds more than {FILES_MAX} files of configuration"
                raise InvalidArgumentError("config", message)
            yield path.relative_to(folder).as_posix(), _read_text(path)


def _is_configuration(folder_name: str) -> bool:
    is_stored = folder_name == _STATE_FOLDER or folder_name.endswith(_GRAPH_SUFFIX)
    return not (is_stored or folder_name.startswith("."))


def _read_text(path: Path) -> str:
    try:
        return read_file(path).decode()
    except (OSError, ValueError) as error:
        message = f"{path} cannot be read: {describe_failure(error)}"
        raise InvalidArgumentError("config", message) from error
