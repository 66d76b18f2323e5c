"""Plans and applies of a cluster for others, by its own policy.

The configuration comes as files, and is read in a folder of its own. What is asked is the policy
of the revision that the plan starts from: a bundle never authorizes its own installation.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

from omnigraph.clusters.addresses import Kind, name_of
from omnigraph.clusters.applied_cluster import Cluster
from omnigraph.clusters.cluster_config import FILE_NAME
from omnigraph.clusters.cluster_findings import ClusterStopped
from omnigraph.clusters.cluster_history import list_history
from omnigraph.clusters.cluster_plan import Change, Operation, Plan
from omnigraph.clusters.cluster_world import Site
from omnigraph.clusters.control_plane import ControlPlane
from omnigraph.config.bounded_files import confine_reads
from omnigraph.errors import (
    ClusterError,
    InvalidArgumentError,
    PolicyDeniedError,
)
from omnigraph.lang.quoting import sanitize_text
from omnigraph.policy.acts import Act, Action
from omnigraph.versioning.record import MAIN_BRANCH

if TYPE_CHECKING:
    from omnigraph.clusters.cluster_documents import ClusterDocument
    from omnigraph.clusters.revision import Revision
    from omnigraph.engine.gate import Gate

JsonObject = dict[str, Any]  # Any: a JSON document
# More than a large cluster has; each is a file that is written and read again.
FILES_MAX: Final = 5_000


@dataclass(frozen=True, slots=True)
class Deployments:
    """What an actor may plan and apply at a cluster."""

    site: Site
    actor: str | None

    def plan(self, files: Mapping[str, str]) -> JsonObject:
        """What an apply of a configuration would change: ClusterPlanOutput."""
        self.authorize()
        with _write_files(files) as folder:
            document = _strip_folder(self._open(folder, self._review_shown).plan(), folder)
        names = ("plan_id", "base_state_revision")
        lists = ("changes", "approvals_required", "diagnostics")
        return (
            {"ok": document["ok"]}
            | {name: document.get(name) for name in names}
            | {name: document.get(name, []) for name in lists}
        )

    def apply(self, files: Mapping[str, str], plan_id: str | None) -> JsonObject:
        """Bring a configuration into force, only by the plan of that id if one is given."""
        self.authorize()
        with _write_files(files) as folder:
            review = partial(self._review_applied, plan_id)
            document = _strip_folder(self._open(folder, review).apply(), folder)
        observed = document.get("state_observations", {})
        return {
            "ok": document["ok"],
            "deployment_id": document.get("operation_id"),
            "state_revision": observed.get("state_revision"),
            "state_written": document.get("state_written", False),
            "converged": document.get("converged", False),
            "changes": document.get("changes", []),
            "diagnostics": document["diagnostics"],
        }

    def list_all(self) -> JsonObject:
        """Every revision as the deployment that made it, newest first."""
        self.authorize()
        return {"deployments": [_describe(each) for each in self._read_history()]}

    def find(self, deployment_id: str) -> JsonObject | None:
        """The deployment of an id; None if there is none."""
        self.authorize()
        found = (each for each in self._read_history() if each["id"] == deployment_id)
        return next(map(_describe, found), None)

    def authorize(self) -> None:
        """Refuse who may not manage the configuration, before anything of it is shown."""
        _authorize_config(Cluster(self.site), self.actor)

    def _read_history(self) -> list[JsonObject]:
        try:
            return list_history(self.site)
        except ClusterStopped as stopped:
            raise ClusterError(stopped.finding.code, str(stopped.finding)) from stopped

    def _open(
        self, folder: Path, review_plan: Callable[[Plan, Revision | None], None]
    ) -> ControlPlane:
        def choose_site(root: str) -> Site:
            # A path in the folder that was sent is where a configuration without a root lives.
            # The other root is not opened: a caller might name any place of the network.
            is_own = "://" not in root and Path(root).is_relative_to(folder)
            if is_own or _simplify_root(root) == _simplify_root(self.site.root):
                return self.site
            raise ValueError("the configuration names another storage root than this cluster")

        return ControlPlane(
            str(folder), self.actor, open_site_at=choose_site, review_plan=review_plan
        )

    def _review_shown(self, plan: Plan, revision: Revision | None) -> None:
        """Ask the revision that a plan starts from, which may be newer than what was asked."""
        del plan
        _authorize_config(Cluster(self.site, revision), self.actor)

    def _review_applied(self, plan_id: str | None, plan: Plan, revision: Revision | None) -> None:
        """Ask for everything that an apply of a plan does, and that it is the plan of an id."""
        cluster = Cluster(self.site, revision)
        _authorize_config(cluster, self.actor)
        for change in plan.changes:
            if _is_about_graph(change):
                _authorize_schema(cluster, name_of(change.resource), self.actor)
        if plan_id is not None and plan.digest != plan_id:
            message = "the files or the state moved since the plan: plan again"
            raise ClusterStopped("resource_content_changed", "plan_id", message)


def _simplify_root(root: str) -> str:
    return root.removeprefix("file://").rstrip("/")


def _authorize_config(cluster: Cluster, actor: str | None) -> None:
    act = Act(Action.CONFIG_MANAGE)
    _check(cluster.server_policy(), actor, act, "no policy is applied to the server")


def _authorize_schema(cluster: Cluster, graph_id: str, actor: str | None) -> None:
    act = Act(Action.SCHEMA_APPLY, target_branch=MAIN_BRANCH)
    _check(cluster.policy(graph_id), actor, act, f"no policy is applied to graph '{graph_id}'")


def _check(gate: Gate | None, actor: str | None, act: Act, missing: str) -> None:
    if gate is None:
        message = f"policy denies {act} to actor '{actor}': {missing}"
        raise PolicyDeniedError(message, actor=actor, action=act.action)
    gate.check(actor, act)


def _is_about_graph(change: Change) -> bool:
    """Whether a change is about a graph that is applied: its schema, or its end."""
    if change.operation is Operation.CREATE:
        return False
    if change.kind is Kind.SCHEMA:
        return True
    return change.kind is Kind.GRAPH and change.operation is Operation.DELETE


@contextmanager
def _write_files(files: Mapping[str, str]) -> Iterator[Path]:
    """A folder with the files of a request, outside of which nothing is read meanwhile."""
    if FILE_NAME not in files:
        raise InvalidArgumentError("files", f"they do not hold {FILE_NAME}")
    if len(files) > FILES_MAX:
        raise InvalidArgumentError("files", f"there are more than {FILES_MAX}")
    with TemporaryDirectory(prefix="omnigraph-cluster-") as name:
        folder = Path(name).resolve()
        for relative, text in files.items():
            path = folder / _require_relative(relative)
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8", newline="")
            except (OSError, ValueError) as error:
                message = f"'{sanitize_text(relative)}' cannot be the name of a file"
                raise InvalidArgumentError("files", message) from error
        with confine_reads(folder):
            yield folder


def _require_relative(name: str) -> PurePosixPath:
    parts = name.split("/")
    is_plain = name.isprintable() and not {"", ".", ".."} & set(parts) and "\\" not in name
    if not is_plain:
        message = f"'{sanitize_text(name)}' is not a path below the configuration"
        raise InvalidArgumentError("files", message)
    return PurePosixPath(name)


def _strip_folder(found: ClusterDocument, folder: Path) -> JsonObject:
    """The document with paths as they were sent: where they were written is not shown."""
    text = json.dumps(found.to_json())
    stripped: JsonObject = json.loads(text.replace(f"{folder}/", "").replace(str(folder), "."))
    return stripped


def _describe(summary: JsonObject) -> JsonObject:
    return {
        "deployment_id": summary["id"],
        "state_revision": summary["revision"],
        "verb": summary["verb"],
        "actor_id": summary.get("actor"),
        "started_at": summary["started_at"],
        "recorded_at": summary["recorded_at"],
        "changes": summary["changes"],
    }
