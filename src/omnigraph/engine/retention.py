"""Retention and upkeep: clean-up, repair, and tags that keep commits."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from omnigraph.engine.arguments import datetime_of, require_optional_count, to_microseconds
from omnigraph.engine.graph_session import Session
from omnigraph.errors import InvalidArgumentError
from omnigraph.html_views import HtmlDocument
from omnigraph.schema.schema_shape import JsonObject
from omnigraph.versioning import tag_events
from omnigraph.versioning.gc.collector import Collected, Swept
from omnigraph.versioning.gc.gc_roots import Policy
from omnigraph.versioning.record import MAIN_BRANCH


@dataclass(frozen=True, slots=True)
class Tag(HtmlDocument):
    """A name that keeps a commit: whose commit it is, who gave the name, and when."""

    name: str
    commit_id: str
    branch: str
    version: int
    created_at: datetime
    actor: str | None = None

    def __repr__(self) -> str:
        return f"Tag({self.name!r}, {self.commit_id!r}, {self.branch!r}, version={self.version})"

    def to_json(self) -> JsonObject:
        """The document of a tag."""
        return {
            "name": self.name,
            "graph_commit_id": self.commit_id,
            "graph_branch": None if self.branch == MAIN_BRANCH else self.branch,
            "graph_manifest_version": self.version,
            "actor_id": self.actor,
            "created_at": to_microseconds(self.created_at),
        }


@dataclass(frozen=True, slots=True, repr=False)
class CleanupReport(HtmlDocument):
    """What a clean-up removed, or would remove if `is_dry`.

    `tables` are what goes of each table, `other` what goes beside them, and `oldest` is the
    version of the oldest commit that stays, by branch.
    """

    uri: str
    policy: Policy
    is_dry: bool
    grace_s: float
    collected: Collected

    def __repr__(self) -> str:
        return (
            f"CleanupReport(commits={self.commits}, objects={self.objects}, bytes={self.bytes},"
            f" errors={len(self.errors)}, dry_run={self.is_dry})"
        )

    @property
    def tables(self) -> tuple[Swept, ...]:
        """What goes, table by table."""
        return tuple(each for each in self.collected.swept if each.table is not None)

    @property
    def other(self) -> Swept | None:
        """What goes of records, checkpoints, change sets and deleted branches."""
        return next((each for each in self.collected.swept if each.table is None), None)

    @property
    def oldest(self) -> dict[str, int]:
        """The version of the oldest commit that stays, by branch."""
        return dict(self.collected.oldest)

    @property
    def commits(self) -> int:
        """How many commits of live branches cannot be read any more."""
        return self.collected.released_commits

    @property
    def objects(self) -> int:
        """How many objects go."""
        return sum(sum(each.objects.values()) for each in self.collected.swept)

    @property
    def bytes(self) -> int:
        """How many bytes go."""
        return sum(each.bytes for each in self.collected.swept)

    @property
    def errors(self) -> tuple[str, ...]:
        """Why some objects that should have gone are still there."""
        return tuple(each.error for each in self.collected.swept if each.error is not None)

    def to_json(self) -> JsonObject:
        """The document of a clean-up."""
        seconds = self.policy.older_than_s
        return {
            "uri": self.uri,
            "keep_versions": self.policy.keep,
            "older_than_secs": None if seconds is None else int(seconds),
            "dry_run": self.is_dry,
            "grace_secs": int(self.grace_s),
            "commits_removed": self.commits,
            "bytes_removed": self.bytes,
            "oldest_versions": self.oldest,
            "datasets": [_describe_table(each) for each in self.tables],
            "other": None if self.other is None else _describe_other(self.other),
        }


def cleanup(
    session: Session,
    policy: Policy,
    *,
    is_dry: bool,
    grace: timedelta | float | None = None,
) -> CleanupReport:
    """Remove what the policy releases and what nothing refers to."""
    resources = session.resources
    seconds = _require_seconds("grace", grace)
    grace_s = resources.committer.settings.grace_s if seconds is None else seconds
    collected = resources.create_collector().collect(policy, is_dry=is_dry, grace_s=grace_s)
    return CleanupReport(session.uri, policy, is_dry, grace_s, collected)


def build_policy(keep: int | None, older_than: timedelta | float | None) -> Policy:
    """The policy that a caller asks for; one without any bound is refused."""
    require_optional_count("keep", keep)
    if keep == 0:
        raise InvalidArgumentError(
            "keep", "the newest commit of a branch always stays", hint="keep 1"
        )
    seconds = _require_seconds("older_than", older_than)
    if keep is None and seconds is None:
        raise InvalidArgumentError(
            "keep", "a clean-up needs to know what to keep", hint="pass keep, older_than, or both"
        )
    return Policy(keep, seconds)


def tag_of(tag: tag_events.Tag) -> Tag:
    """A tag as programs see it."""
    ref = tag.snapshot.ref
    created_at = datetime_of(tag.created_at)
    return Tag(tag.name, ref.commit, ref.branch, ref.seq, created_at, tag.actor)


def _require_seconds(argument: str, value: timedelta | float | None) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, timedelta | int | float):
        raise InvalidArgumentError(argument, f"a {type(value).__name__} is not a time span")
    seconds = value.total_seconds() if isinstance(value, timedelta) else float(value)
    if not 0 <= seconds < float("inf"):
        raise InvalidArgumentError(argument, f"{seconds:g} s is not a time span")
    return seconds


def _describe_table(swept: Swept) -> JsonObject:
    return {
        "type_key": swept.type_key or swept.table,
        "bytes_removed": swept.bytes,
        "old_versions_removed": swept.objects.get("versions", 0),
        "objects_removed": dict(swept.objects),
        "error": swept.error,
    }


def _describe_other(swept: Swept) -> JsonObject:
    return {
        "bytes_removed": swept.bytes,
        "objects_removed": dict(swept.objects),
        "error": swept.error,
    }
