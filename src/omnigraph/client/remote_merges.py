"""Merges, reverts and cherry-picks into a branch on a server, and their plans."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from omnigraph.client.document_decoding import decode_merge, decode_plan
from omnigraph.client.http_transport import Call, HttpTransport
from omnigraph.client.remote_states import format_state
from omnigraph.engine.commit_loop import Terms
from omnigraph.engine.refs import StateRef
from omnigraph.engine.write_results import MergePlan, MergeResult
from omnigraph.writers.merge.merge_choices import MergeBy, Prefer, Resolve, build_choices
from omnigraph.writers.merge.resolver_answers import ResolverAnswers

JsonObject = dict[str, Any]  # Any: a JSON document


class RemoteMerger:
    """Merges into one branch, with the methods of `engine.merger.Merger`."""

    def __init__(
        self,
        transport: HttpTransport,
        branch: str,
        write: Callable[[tuple[str, ...], JsonObject], JsonObject],
    ) -> None:
        self._transport = transport
        self._branch = branch
        self._write = write

    def choose(self, prefer: Prefer, by: str | None, resolve: Resolve = None) -> JsonObject:
        """The choices of a caller, checked; what is compared is up to the server by default."""
        given = resolve if resolve is None or callable(resolve) else list(resolve)
        found = build_choices(prefer, by or MergeBy.PROPERTY, given)
        chosen = {"prefer": None if prefer is None else dict(found.prefer), "by": by}
        return chosen if given is None else {**chosen, "resolve": given}

    def merge(
        self, source: StateRef, *, chosen: JsonObject, delete_branch: bool, terms: Terms
    ) -> MergeResult:
        """Bring a commit into the branch."""
        chosen = self._ask_resolver(source, chosen)
        document = self._name_source(source) | chosen | _describe_terms(terms)
        document["delete_branch"] = delete_branch
        return decode_merge(self._write(("branches", "merge"), document))

    def plan(self, source: StateRef, *, chosen: JsonObject) -> MergePlan:
        """What a merge would do now."""
        chosen = self._ask_resolver(source, chosen)
        return self._plan(("branches", "merge"), self._name_source(source) | chosen)

    def _ask_resolver(self, source: StateRef, chosen: JsonObject) -> JsonObject:
        """The choices with decisions as lines: a function is asked here, about plans."""
        resolver = chosen.get("resolve")
        if not callable(resolver):
            return chosen
        asked = {"by": chosen["by"]}
        segments, named = ("branches", "merge"), self._name_source(source)
        plan = self._plan(segments, named | asked)
        header, answers = next(plan.iter_decision_lines()), ResolverAnswers(resolver)
        decided = {**chosen, "resolve": [header]}
        while answers.ask(plan.conflicts):
            decided["resolve"] = [header, *answers.iter_lines()]
            plan = self._plan(segments, named | decided)
        return decided

    def revert(self, commit: StateRef, *, chosen: JsonObject, terms: Terms) -> MergeResult:
        """Undo what a commit changed, as a commit of its own."""
        document = self._name_commit(commit) | chosen | _describe_terms(terms)
        return decode_merge(self._write(("revert",), document))

    def plan_revert(self, commit: StateRef, *, chosen: JsonObject) -> MergePlan:
        """What a revert would do now."""
        return self._plan(("revert",), self._name_commit(commit) | chosen)

    def cherry_pick(self, commit: StateRef, *, chosen: JsonObject, terms: Terms) -> MergeResult:
        """Do what a commit changed on this branch too, as a commit of its own."""
        document = self._name_commit(commit) | chosen | _describe_terms(terms)
        return decode_merge(self._write(("cherry-pick",), document))

    def plan_cherry_pick(self, commit: StateRef, *, chosen: JsonObject) -> MergePlan:
        """What a cherry-pick would do now."""
        return self._plan(("cherry-pick",), self._name_commit(commit) | chosen)

    def _name_source(self, source: StateRef) -> JsonObject:
        return {"source": format_state("source", source), "target": self._branch}

    def _name_commit(self, commit: StateRef) -> JsonObject:
        return {"commit": format_state("commit", commit), "branch": self._branch}

    def _plan(self, segments: tuple[str, ...], document: JsonObject) -> MergePlan:
        given = {name: value for name, value in document.items() if value is not None}
        call = Call("POST", (*segments, "plan"), document=given)
        return decode_plan(self._transport.send(call).read_json())


def _describe_terms(terms: Terms) -> JsonObject:
    return {"message": terms.message, "if_commit": terms.if_commit, "key": terms.key}
