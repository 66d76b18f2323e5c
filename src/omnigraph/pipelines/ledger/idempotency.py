"""The loads that a pipeline made on a target, as the commits of its branch say.

The key of a load is on the record of its commit: it begins with the pipeline and the target, names
the slot, and, where the target had a load before, ends with the commit of that one. So a slot that
is loaded again after another one has another key, and every attempt at it has the same. A load is
in force while neither its commit nor the merge that brought it to the branch is reverted.

    __pipelines/{pipeline}/loads/{digest}.json    the newest load up to a version of the branch
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Final

from omnigraph.engine.branch_log import BranchLog
from omnigraph.errors import SnapshotGoneError
from omnigraph.pipelines.ledger.run_ledger import (
    FOLDER,
    TargetRun,
    decode_target,
    encode_document,
    encode_target,
    read_document,
)

if TYPE_CHECKING:
    from omnigraph import Branch
    from omnigraph.storage.objects.object_store import Objects

if TYPE_CHECKING:
    from omnigraph import Branch
    from omnigraph.engine import Commit
    from omnigraph.storage.objects.object_store import Objects

_DIGEST_CHARACTERS: Final = 32
_AFTER: Final = re.compile(r":after-[0-9A-HJKMNP-TV-Z]{26}$")

# A look at more commits than these is noted, so that the next one begins where it ended.
SAVE_INTERVAL_COMMITS: Final = 256
_KEY_DIGEST_CHARACTERS: Final = 32


@dataclass(frozen=True, slots=True)
class TargetKeys:
    """The idempotency keys of a pipeline for one target."""

    pipeline: str
    target: str

    @property
    def prefix(self) -> str:
        """What the keys of all slots begin with."""
        return f"pipeline:{self.pipeline}:{self.target}:"

    def format_first_key(self, slot: str) -> str:
        """The key of a slot that no load precedes."""
        return f"{self.prefix}{slot}"

    def format_next_key(self, slot: str, load: Load | None) -> str:
        """The key of a slot that follows a load."""
        first = self.format_first_key(slot)
        return first if load is None else f"{first}:after-{load.commit}"

    def slot_of(self, key: str) -> str | None:
        """The slot of a key; None if the key is of another pipeline or target."""
        is_own = key.startswith(self.prefix)
        return _AFTER.sub("", key.removeprefix(self.prefix)) if is_own else None


@dataclass(frozen=True, slots=True)
class Load:
    """A load of a pipeline; `brought_by` is the merge that brought its commit, or the commit.

    `message` is that of the commit.
    """

    key: str
    commit: str
    brought_by: str
    message: str | None = None


@dataclass(frozen=True, slots=True)
class LastLoad:
    """The newest load of a branch, if it has one, as of a version.

    `head` is the commit of the version. `reverts` are those made since the load, newest first, each
    with the commit that it undoes. `is_known` says that all commits since the load were examined.
    """

    load: Load | None
    version: int
    head: str
    reverts: tuple[tuple[str, str], ...] = ()
    is_known: bool = True

    @property
    def is_in_force(self) -> bool:
        """Whether there is a load, and nothing undid it since."""
        if self.load is None or not self.is_known:
            return False
        undone: set[str] = set()
        for commit, reverted in self.reverts:
            if commit not in undone:
                undone.add(reverted)
        return not undone & {self.load.commit, self.load.brought_by}


class LoadHistory:
    """The loads of a pipeline on a branch."""

    def __init__(self, objects: Objects, branch: Branch, keys: TargetKeys) -> None:
        name = f"{branch.life}\n{keys.target}"
        digest = hashlib.sha256(name.encode()).hexdigest()[:_DIGEST_CHARACTERS]
        self._objects = objects
        self._branch = branch
        self._keys = keys
        self._path = f"{FOLDER}/{keys.pipeline}/loads/{digest}.json"

    def find_last_load(self) -> LastLoad:
        """The newest load of any slot.

        Where commits were collected since it was last examined, whether it is in force is not
        known.
        """
        noted = self._read_saved()
        found = self._find_since(noted)
        is_news = noted is None or noted.load != found.load
        is_far = noted is not None and found.version - noted.version > SAVE_INTERVAL_COMMITS
        if found.load is not None and (is_news or is_far):
            self._objects.put(self._path, encode_document(asdict(found)))
        return found

    def find_last_of_slot(self, slot: str, *, after: int | None) -> LastLoad:
        """The newest load of one slot; `after` is a version above which all of its loads are."""
        return self._find_newest(after, lambda key: self._keys.slot_of(key) == slot)

    def _find_since(self, noted: LastLoad | None) -> LastLoad:
        def is_own(key: str) -> bool:
            return self._keys.slot_of(key) is not None

        if noted is None:
            return self._find_newest(None, is_own)
        try:
            found = self._find_newest(noted.version, is_own, noted)
        except SnapshotGoneError:
            found = self._find_newest(None, is_own)
            if found.load is None:
                return replace(found, load=noted.load, is_known=False)
        return found

    def _find_newest(
        self, after: int | None, is_wanted: Callable[[str], bool], noted: LastLoad | None = None
    ) -> LastLoad:
        """The newest load above a version, else the one that was noted at that version."""
        commits = list(BranchLog(self._branch).iter_since(after))
        head = commits[0][0] if commits else self._branch.head
        reverts: list[tuple[str, str]] = []
        for commit, by in commits:
            if commit.reverts is not None:
                reverts.append((commit.id, commit.reverts))
            if commit.key is not None and is_wanted(commit.key):
                load = Load(commit.key, commit.id, by.id, commit.message)
                return LastLoad(load, head.version, head.id, tuple(reverts))
        if noted is None:
            return LastLoad(None, head.version, head.id)
        below = commits[-1][1].parents[0] if commits else head.id
        if below != noted.head:
            # The branch is not the one that was examined: a copy of it was put back.
            return self._find_newest(None, is_wanted)
        both = (*reverts, *noted.reverts)
        return LastLoad(noted.load, head.version, head.id, both, noted.is_known)

    def _read_saved(self) -> LastLoad | None:
        document = read_document(self._objects, self._path)
        if document is None:
            return None
        return LastLoad(
            Load(**document["load"]),
            document["version"],
            document["head"],
            tuple((commit, reverted) for commit, reverted in document["reverts"]),
            document["is_known"],
        )


class IdempotencyKey:
    """What is known of a key on a branch."""

    def __init__(self, objects: Objects, pipeline: str, *, life: str, key: str) -> None:
        digest = hashlib.sha256(f"{life}\n{key}".encode()).hexdigest()[:_KEY_DIGEST_CHARACTERS]
        self._objects = objects
        self._key = key
        self._folder = f"{FOLDER}/{pipeline}/keys/{digest}"

    def find_unused_version(self) -> int | None:
        """The highest version of the branch up to which the key was not used, if any is known."""
        path = None
        for entry in self._objects.list(f"{self._folder}/after"):
            path = entry.path
        return None if path is None else int(path.rsplit("/", 1)[1].removesuffix(".json"))

    def find_commit(self, branch: Branch) -> Commit | None:
        """The commit with the key; where there is none, that is noted before any work.

        A commit that is made later is above the version that is noted, so that it is found however
        many others follow it.
        """
        after, version = self.find_unused_version(), branch.head.version
        made = BranchLog(branch).find_by_key(self._key, after=after)
        if made is None and (after is None or after < version):
            self.record_unused(version)
        return made

    def record_unused(self, version: int) -> None:
        """Note that up to a version of the branch no commit has the key."""
        path = f"{self._folder}/after/{version:020}.json"
        self._objects.put_new(path, encode_document({"key": self._key}))

    def find_outcome(self) -> TargetRun | None:
        """What became of the target, if that was noted."""
        document = read_document(self._objects, f"{self._folder}/done.json")
        return None if document is None else decode_target(document)

    def record_outcome(self, target: TargetRun) -> None:
        """Note what became of a target that has its commit; the first to say it is right."""
        self._objects.put_new(f"{self._folder}/done.json", encode_document(encode_target(target)))
