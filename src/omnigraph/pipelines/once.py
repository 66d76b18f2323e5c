"""That a slot is written to a target once, as objects of the target's own graph.

The commit has the key on its record. These objects only say where to look for it, and that it need
not be looked for: they lie in the graph, so that a ledger that is moved or lost changes nothing,
and another graph at the same address is written to anew.

    __pipelines/{pipeline}/keys/{digest}/after/{version:020}.json    up to there, no commit has it
    __pipelines/{pipeline}/keys/{digest}/done.json                   what became of the target
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from omnigraph.pipelines.ledger import (
    FOLDER,
    TargetRun,
    decode_target,
    encode_document,
    encode_target,
    read_document,
)

if TYPE_CHECKING:
    from omnigraph import Branch
    from omnigraph.engine import Commit
    from omnigraph.storage.objects import Objects

_KEY_DIGEST_CHARACTERS: Final = 32


class IdempotencyKey:
    """What is known of a key on a branch."""

    def __init__(self, objects: Objects, pipeline: str, *, life: str, key: str) -> None:
        digest = hashlib.sha256(f"{life}\n{key}".encode()).hexdigest()[:_KEY_DIGEST_CHARACTERS]
        self._objects = objects
        self._key = key
        self._folder = f"{FOLDER}/{pipeline}/keys/{digest}"

    def find_unused_version(self) -> int | None:
        """The highest version of the branch up to which nobody used the key, if any is known."""
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
        made = branch.commit_with_key(self._key, after=after)
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
