"""Opens proposals; forks a branch, loads into it and opens a proposal in one step."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from omnigraph.engine import arguments
from omnigraph.engine.load_dispatch import AnySource, DialectName, LoadModeName
from omnigraph.engine.proposals.proposal_texts import require_optional_body, require_title
from omnigraph.engine.read_requests import QueryText
from omnigraph.errors import (
    BranchExistsError,
    InDoubtError,
    OmnigraphError,
    PolicyDeniedError,
    StorageError,
)
from omnigraph.ids import generate_ulid

if TYPE_CHECKING:
    from omnigraph.engine.branch import Branch
    from omnigraph.engine.graph import Graph
    from omnigraph.engine.proposals.proposal import Proposal

_WORD: Final = re.compile(r"[^a-z0-9]+")
_NAME_CHARACTERS_MAX: Final = 40
_DIGEST_CHARACTERS: Final = 12
# After these, the branch may hold what was written.
_UNDECIDED: Final = (InDoubtError, StorageError)


class ProposalDraft:
    """A proposal that is opened with its first write, on a branch of its own.

    A call repeated with its key finds the branch and the proposal of the first one, wherever that
    stopped. A write that is refused leaves no branch, if its actor may delete one.
    """

    def __init__(
        self, target: Branch, title: str, *, body: str | None = None, key: str | None = None
    ) -> None:
        self._target = target
        self._title = require_title("title", title)
        self._body = require_optional_body("body", body)
        self._key = arguments.require_optional_key(key)

    def load(
        self,
        source: AnySource,
        *,
        mode: LoadModeName,
        type: str | None = None,  # noqa: A002
        dialect: DialectName = "strict",
        message: str | None = None,
    ) -> Proposal:
        """Load entities into a new branch, and propose to merge it; see `Branch.load`."""

        def load(branch: Branch) -> object:
            return branch.load(
                source, mode=mode, type=type, dialect=dialect, message=message, key=self._key
            )

        return self._propose(load)

    def mutate(
        self,
        text: QueryText,
        *,
        name: str | None = None,
        params: Mapping[str, object] | None = None,
        message: str | None = None,
    ) -> Proposal:
        """Run a mutation on a new branch, and propose to merge it; see `Branch.mutate`."""

        def mutate(branch: Branch) -> object:
            return branch.mutate(text, name=name, params=params, message=message, key=self._key)

        return self._propose(mutate)

    def _propose(self, write: Callable[[Branch], object]) -> Proposal:
        graph, target = self._target.graph, self._target.name
        # Its branch may be merged and deleted by now.
        made = self._find_made(graph)
        if made is not None:
            return made
        branch, is_new = self._open_branch(graph)
        try:
            write(branch)
        except OmnigraphError as error:
            if is_new and not isinstance(error, _UNDECIDED):
                _delete_branch(branch)
            raise
        try:
            return graph.open_proposal(
                branch.name, title=self._title, target=target, body=self._body, key=self._key
            )
        except PolicyDeniedError:
            if is_new:
                _delete_branch(branch)
            raise

    def _find_made(self, graph: Graph) -> Proposal | None:
        """The proposal that an earlier request with the key has opened."""
        if self._key is None:
            return None
        # Who may propose and not read is denied the list as long as it shows him nothing.
        with suppress(PolicyDeniedError):
            for each in graph.proposals():
                if each.key == self._key:
                    return graph.proposal(each.number)
        return None

    def _open_branch(self, graph: Graph) -> tuple[Branch, bool]:
        """The branch of the draft, and whether it was created now."""
        name = build_branch_name(self._title, self._key)
        try:
            return graph.create_branch(name, source=self._target.name), True
        except BranchExistsError:
            if self._key is None:
                raise
            return graph.branch(name), False


def _delete_branch(branch: Branch) -> None:
    """End the branch of a draft that came to nothing, if its actor may."""
    with suppress(OmnigraphError):
        branch.graph.delete_branch(branch.name)


def build_branch_name(title: str, key: str | None) -> str:
    """The name of the branch of a proposal: the same one for the same key."""
    words = _WORD.sub("-", title.lower())[:_NAME_CHARACTERS_MAX].strip("-") or "change"
    if key is None:
        return f"proposal/{words}-{generate_ulid().lower()[-_DIGEST_CHARACTERS:]}"
    digest = hashlib.sha256(key.encode()).hexdigest()[:_DIGEST_CHARACTERS]
    return f"proposal/{digest}"
