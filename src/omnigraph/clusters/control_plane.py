"""The verbs of a cluster, from a folder of configuration to a document.

`plan` and `status` take no lock. `apply`, `approve`, `refresh` and `import` do, so that people do
not surprise each other; what they write is right without it, because one put decides.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from omnigraph.clusters.approvals import (
    make_approval,
    put_approval,
    read_approvals,
    select_valid,
)
from omnigraph.clusters.cluster_apply import (
    ApplyContext,
    Outcomes,
    compute_next_content,
    execute,
    format_now,
    refresh_composites,
)
from omnigraph.clusters.cluster_config import (
    ADVICE,
    FILE_NAME,
    pause_collection,
    read_config,
    read_config_deeply,
    read_root,
)
from omnigraph.clusters.cluster_documents import (
    ClusterDocument,
    describe_broken,
    describe_desired,
    describe_resources,
    describe_statuses,
    format_approval,
    format_changes,
    format_plan,
    format_revision,
    summarize_content,
    warn_pending,
)
from omnigraph.clusters.cluster_findings import ClusterFindings, ClusterStopped
from omnigraph.clusters.cluster_grants import preview_grants
from omnigraph.clusters.cluster_history import checkout, clean_up, list_history, show_revision
from omnigraph.clusters.cluster_layout import build_revision_path
from omnigraph.clusters.cluster_lock import ClusterLock, LockRecord
from omnigraph.clusters.cluster_observe import (
    import_graphs,
    iter_payload_problems,
    observe_applied,
    observe_graphs,
    observe_state,
)
from omnigraph.clusters.cluster_plan import Plan, diff
from omnigraph.clusters.cluster_world import Site, StoredWorld, open_site
from omnigraph.clusters.desired import Desired
from omnigraph.clusters.migration_preview import preview_migrations
from omnigraph.clusters.revision import (
    OperationRecord,
    Revision,
    RevisionContent,
    encode_revision,
)
from omnigraph.clusters.saved_plan import require_unmoved
from omnigraph.clusters.stored_documents import JsonObject
from omnigraph.errors import OmnigraphError, StorageError
from omnigraph.ids import generate_ulid

_EMPTY: Final = RevisionContent()


@dataclass
class ControlPlane:
    """The verbs on one folder; `open_site_at` gives the storage that its configuration names."""

    config_dir: str
    actor: str | None = None
    lock_timeout_s: float = 0.0
    open_site_at: Callable[[str], Site] = open_site
    findings: ClusterFindings = field(default_factory=ClusterFindings)
    # Raises for a plan that may not be shown or applied, with the revision that it starts from.
    review_plan: Callable[[Plan, Revision | None], None] | None = None
    _held: LockRecord | None = None
    _newest: Revision | None = None

    # ---- verbs ----

    def validate(self, *, is_deep: bool = False) -> ClusterDocument:
        """Check the whole configuration; no storage is read.

        A deep check starts Spark, to read the expressions of pipelines.
        """
        found = read_config_deeply(self.config_dir) if is_deep else read_config(self.config_dir)
        self.findings.extend(found.findings)
        desired = found.desired
        fields: JsonObject = {
            "config_dir": self.config_dir,
            "config_file": str(Path(self.config_dir) / FILE_NAME),
        }
        if desired is None:
            empty: JsonObject = {"resource_digests": {}, "resources": [], "dependencies": []}
            return self._finish(fields | empty)
        return self._finish(
            fields | describe_desired(desired) | {"resources": describe_resources(desired)},
            f"{len(desired.resources)} resources",
        )

    def plan(self) -> ClusterDocument:
        """What an apply would do now; nothing is written, and no lock is taken."""
        return self._run("plan", self._plan, needs_lock=False)

    def apply(self, *, saved: Path | None = None) -> ClusterDocument:
        """Make the cluster what the configuration says, and record it in one revision.

        `saved` is a file that `plan` wrote: if anything moved since, nothing happens.
        """
        return self._run("apply", lambda site: self._apply(site, saved))

    def approve(self, resource: str) -> ClusterDocument:
        """Allow one change of the current plan that destroys data."""
        return self._run("approve", lambda site: self._approve(site, resource))

    def report_status(self) -> ClusterDocument:
        """What is applied; payloads are verified, graphs are not opened."""
        return self._run("status", self._report_status, needs_lock=False)

    def refresh(self) -> ClusterDocument:
        """Look at the graphs and payloads, and record what is there."""
        return self._run("refresh", self._refresh)

    def import_state(self) -> ClusterDocument:
        """Start the ledger with the graphs that are there already."""
        return self._run("import", self._import)

    def force_unlock(self, lock_id: str) -> ClusterDocument:
        """Remove the lock of that very id."""

        def run(site: Site) -> ClusterDocument:
            ClusterLock(site.objects).release(lock_id)
            fields = {"state_observations": self._observe(site), "lock_removed": True}
            return self._finish(fields, f"removed lock {lock_id}")

        return self._run("force-unlock", run, needs_lock=False, fallback={"lock_removed": False})

    def list_revisions(self) -> ClusterDocument:
        """Every revision, newest first."""

        def run(site: Site) -> ClusterDocument:
            found = list_history(site)
            if not found:
                self.findings.add_warning("state_missing", "state", _IMPORT_HINT)
            return self._finish({"revisions": found}, *map(format_revision, found))

        return self._run("history", run, needs_lock=False)

    def show(self, number: int | None) -> ClusterDocument:
        """One revision, the newest if none is named."""

        def run(site: Site) -> ClusterDocument:
            found = show_revision(site, number)
            lines = (f"{name}  {each.digest}" for name, each in sorted(found.resources.items()))
            document = json.loads(encode_revision(found))
            return self._finish({"state_cas": found.cas, **document}, *lines)

        return self._run("show", run, needs_lock=False)

    def checkout(self, number: int, target: Path) -> ClusterDocument:
        """Write the configuration of a revision to a folder."""

        def run(site: Site) -> ClusterDocument:
            files = checkout(site, show_revision(site, number), target)
            return self._finish(
                {"revision": number, "folder": str(target), "files": files},
                f"wrote revision {number} to {target}: {len(files)} files",
            )

        return self._run("checkout", run, needs_lock=False)

    def clean_up(self, *, keep: int | None, grace_s: float, is_dry: bool) -> ClusterDocument:
        """Remove what no revision names, and what is left of deleted graphs."""

        def run(site: Site) -> ClusterDocument:
            found = clean_up(site, keep=keep, grace_s=grace_s, is_dry=is_dry)
            verb = "found" if is_dry else "removed"
            return self._finish(
                {
                    "removed": not is_dry,
                    "payloads": list(found.payloads),
                    "folders": list(found.folders),
                },
                f"{verb} {len(found.payloads)} payloads that no revision needs",
                f"{verb} {len(found.folders)} folders of deleted graphs",
            )

        return self._run("cleanup", run, needs_lock=not is_dry)

    # ---- bodies ----

    @pause_collection()
    def _plan(self, site: Site) -> ClusterDocument:
        revision = self._read_newest(site)
        desired = self._read_desired(revision)
        plan = self._build_plan(site, desired, revision)
        if revision is not None:
            plan = preview_migrations(site, desired, revision, plan, self.findings)
        content = _EMPTY if revision is None else revision.content
        plan = preview_grants(site, desired, content, plan, self.findings)
        changes = [each.to_json() for each in plan.changes]
        return self._finish(
            {
                "desired_revision": {"config_digest": desired.config_digest},
                **describe_desired(desired),
                "state_observations": self._observe(site),
                "plan_id": plan.digest,
                "base_state_revision": plan.base_revision,
                "base_state_cas": plan.base_cas,
                "changes": changes,
                "blast_radius": plan.list_blast_radius(),
                "approvals_required": plan.list_approvals(),
            },
            *format_plan(changes),
            *(
                f"allow it with: {format_approval(each.resource)}"
                for each in plan.changes
                if each.is_gated and each.is_pending
            ),
        )

    def _apply(self, site: Site, saved: Path | None) -> ClusterDocument:
        started = format_now()
        revision = self._require_state(site)
        desired = self._read_desired(revision)
        plan = self._build_plan(site, desired, revision)
        if saved is not None:
            require_unmoved(saved, plan, desired)
        cluster_id = site.ledger.create()
        content = revision.content
        context = ApplyContext(cluster_id, self.actor, desired, content, revision.number)
        world = StoredWorld(site)
        outcomes = execute(plan, context, world, self.findings)
        operation = OperationRecord(
            generate_ulid(), "apply", self.actor, started, format_now(), plan.digest
        )
        content = compute_next_content(context, plan, outcomes, operation)
        warn_pending(outcomes.changes, self.findings)
        newest, is_written = revision, False
        if content != revision.content:
            changes = tuple(each.summarize() for each in outcomes.changes)
            made = Revision(revision.number + 1, revision.cas, operation, content, changes)
            is_written = self._commit(site, made)
            # After a lost race, what is shown is what another run recorded.
            newest = self._require_state(site)
        # Folders go only after the revision that names them no more.
        self._remove_tombstones(site, newest)
        return self._describe_apply(site, desired, outcomes, newest, is_written=is_written)

    def _approve(self, site: Site, resource: str) -> ClusterDocument:
        if self.actor is None:
            raise ClusterStopped(
                "approval_actor_required", resource, "an approval needs an actor: --as ACTOR"
            )
        revision = self._require_state(site)
        desired = self._read_desired(revision)
        plan = self._build_plan(site, desired, revision)
        gated = {each.resource: each for each in plan.changes if each.is_gated}
        change = gated.get(resource)
        if change is None:
            known = ", ".join(gated) or "none"
            message = f"the plan has no change of it that needs an approval; such are: {known}"
            raise ClusterStopped("approval_not_required", resource, message)
        approval = make_approval(change, desired.config_digest, self.actor, now=format_now())
        put_approval(site.objects, approval)
        return self._finish(
            {
                "approval_id": approval.approval_id,
                "resource": resource,
                "operation": approval.operation,
                "approved_by": self.actor,
            },
            f"{self.actor} approved: {approval.operation} {resource}",
        )

    def _report_status(self, site: Site) -> ClusterDocument:
        revision = self._read_newest(site)
        content = _EMPTY if revision is None else revision.content
        if revision is None:
            self.findings.add_warning("state_missing", "state", _IMPORT_HINT)
        content = observe_applied(site, content, self.findings)
        return self._finish(self._describe_state(site, content), *summarize_content(content))

    def _refresh(self, site: Site) -> ClusterDocument:
        revision = self._require_state(site)
        content = observe_graphs(site, revision.content, self.findings)
        resources, statuses = dict(content.resources), dict(content.statuses)
        for address, problem, message in iter_payload_problems(site, revision.content):
            is_unreadable = problem == "payload_read_error"
            status = "error" if is_unreadable else "drifted"
            statuses[address] = {"status": status, "conditions": [problem], "message": message}
            if is_unreadable:
                self.findings.add_error("catalog_payload_read_error", address, message)
            else:
                resources.pop(address, None)
        content = replace(content, resources=refresh_composites(resources), statuses=statuses)
        return self._record(site, "refresh", content, revision)

    def _import(self, site: Site) -> ClusterDocument:
        if self._read_newest(site) is not None:
            raise ClusterStopped(
                "state_already_exists", "state", "the cluster has a ledger: use refresh"
            )
        desired = self._read_desired(None)
        content = import_graphs(site, desired, self.findings)
        if self.findings.has_errors:
            return self._finish({"operation": "import"} | self._describe_state(site, _EMPTY))
        site.ledger.create()
        return self._record(site, "import", content, None)

    # ---- parts ----

    def _run(
        self,
        verb: str,
        body: Callable[[Site], ClusterDocument],
        *,
        needs_lock: bool = True,
        fallback: JsonObject | None = None,
    ) -> ClusterDocument:
        config = read_root(self.config_dir)
        if config.root is None:
            self.findings.extend(config.findings)
            return self._finish(fallback or {})
        try:
            site = self.open_site_at(config.root)
        except (OmnigraphError, ValueError) as error:
            self.findings.add_error("storage_root_invalid", "storage", str(error))
            return self._finish(fallback or {})
        try:
            with self._hold_lock(site, verb, is_needed=needs_lock and config.is_locked):
                return body(site)
        except _ConfigRefused as refused:
            fallback = refused.fields | (fallback or {})
        except ClusterStopped as stopped:
            self.findings.found.append(stopped.finding)
        except StorageError as error:
            self.findings.add_error("storage_root_invalid", config.root, error.message)
        found = {"state_observations": self._observe(site)}
        return self._finish(found | (fallback or {}))

    @contextmanager
    def _hold_lock(self, site: Site, verb: str, *, is_needed: bool) -> Iterator[None]:
        with ExitStack() as stack:
            if is_needed:
                lock = ClusterLock(site.objects).hold(verb, timeout_s=self.lock_timeout_s)
                self._held = stack.enter_context(lock)
            yield

    def _read_desired(self, revision: Revision | None) -> Desired:
        found = read_config(self.config_dir, None if revision is None else revision.content)
        # Advice on a configuration is for those who ask about it alone.
        self.findings.extend(each for each in found.findings if each.code not in ADVICE)
        if found.desired is None:
            raise _ConfigRefused(describe_broken(found.broken))
        return found.desired

    def _read_newest(self, site: Site) -> Revision | None:
        self._newest = site.ledger.read_newest()
        return self._newest

    def _observe(self, site: Site) -> JsonObject:
        with suppress(ClusterStopped, StorageError):
            return observe_state(site, self._held, self._newest or self._read_newest(site))
        return observe_state(site, self._held, None)

    def _require_state(self, site: Site) -> Revision:
        revision = self._read_newest(site)
        if revision is None:
            raise ClusterStopped("state_missing", "state", _IMPORT_HINT)
        return revision

    def _build_plan(self, site: Site, desired: Desired, revision: Revision | None) -> Plan:
        content = _EMPTY if revision is None else revision.content
        base = (0, None) if revision is None else (revision.number, revision.cas)
        plan = diff(desired, content, base_revision=base[0], base_cas=base[1], approved={})
        if self.review_plan is not None:
            self.review_plan(plan, revision)
        if not any(each.is_gated for each in plan.changes):
            return plan
        stored = read_approvals(site.objects)
        valid = select_valid(stored, content.approval_records.keys(), plan, self.findings)
        return diff(desired, content, base_revision=base[0], base_cas=base[1], approved=valid)

    def _commit(self, site: Site, revision: Revision) -> bool:
        try:
            is_written = site.ledger.put(revision)
        except StorageError as error:
            path = build_revision_path(revision.number)
            raise ClusterStopped("state_write_error", path, error.message) from error
        if is_written:
            site.ledger.write_copies(revision)
        else:
            message = f"revision {revision.number} was written by another run: run it again"
            self.findings.add_error("state_cas_mismatch", "state", message)
        return is_written

    def _remove_tombstones(self, site: Site, revision: Revision) -> None:
        world = StoredWorld(site)
        for folder in revision.content.tombstones:
            if not world.remove_folder(folder):
                message = f"{folder} is not empty yet: the next apply goes on"
                self.findings.add_warning("graph_delete_incomplete", folder, message)

    def _describe_apply(
        self,
        site: Site,
        desired: Desired,
        outcomes: Outcomes,
        newest: Revision,
        *,
        is_written: bool,
    ) -> ClusterDocument:
        changes = [each.to_json() for each in outcomes.changes]
        done = sum(each["disposition"] == "applied" for each in changes)
        pending = sum(each.is_pending for each in outcomes.changes)
        actor = {} if self.actor is None else {"actor": self.actor}
        is_converged = outcomes.is_converged and not self.findings.has_errors
        return self._finish(
            {
                **actor,
                "desired_revision": {"config_digest": desired.config_digest},
                "state_observations": self._observe(site),
                "changes": changes,
                "applied_count": done,
                "deferred_count": pending,
                "converged": is_converged,
                "state_written": is_written,
                "operation_id": newest.operation.id if is_written else None,
                "resource_statuses": describe_statuses(newest.content),
            },
            *format_changes(changes),
            f"revision {newest.number}: {done} applied, {pending} left"
            if is_written
            else f"revision {newest.number}: nothing was written",
        )

    def _record(
        self, site: Site, verb: str, content: RevisionContent, base: Revision | None
    ) -> ClusterDocument:
        now = format_now()
        operation = OperationRecord(generate_ulid(), verb, self.actor, now, now)
        number = 1 if base is None else base.number + 1
        cas = None if base is None else base.cas
        self._commit(site, Revision(number, cas, operation, content))
        newest = self._read_newest(site)
        shown = content if newest is None else newest.content
        return self._finish(
            {"operation": verb} | self._describe_state(site, shown), *summarize_content(shown)
        )

    def _describe_state(self, site: Site, content: RevisionContent) -> JsonObject:
        used = content.approval_records
        return {
            "state_observations": self._observe(site),
            "resource_digests": {
                address: each.digest for address, each in sorted(content.resources.items())
            },
            "resource_statuses": describe_statuses(content),
            "observations": dict(sorted(content.observations.items())),
            "approvals": [
                each.to_json() | dict(used.get(each.approval_id, {}))
                for each in read_approvals(site.objects)
            ],
        }

    def _finish(self, fields: JsonObject, *summary: str) -> ClusterDocument:
        named = {"config_dir": self.config_dir} | fields
        return ClusterDocument(named, tuple(self.findings.found), summary)


_IMPORT_HINT: Final = "nothing was ever applied here: start with `omnigraph cluster import`"


class _ConfigRefused(Exception):
    """The configuration has errors, which are reported already; `fields` say what they reach."""

    def __init__(self, fields: JsonObject) -> None:
        super().__init__()
        self.fields = fields
