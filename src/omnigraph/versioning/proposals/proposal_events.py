"""What can happen to a proposal, as data and as the fields of stored objects."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, TypeAlias, TypeVar, assert_never

from omnigraph.ids import generate_ulid
from omnigraph.versioning.json_fields import Fields
from omnigraph.versioning.record import CommitRef
from omnigraph.versioning.record_codec import decode_ref, encode_ref

_Choice = TypeVar("_Choice", bound=StrEnum)
_COUNTS: Final = ("inserted", "updated", "deleted")


class Verdict(StrEnum):
    """What a review says."""

    APPROVE = "approve"
    REQUEST_CHANGES = "request_changes"


class CheckOutcome(StrEnum):
    """How a check ended."""

    PASS = "pass"  # noqa: S105 — not a password
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Anchor:
    """What a comment is about: an entity, one of its properties, before or after the change."""

    type_name: str
    entity_id: str
    property: str | None = None
    side: str | None = None


@dataclass(frozen=True, slots=True)
class Opened:
    """A proposal began. `source` and `source_stream` are its branch, `head` what that held."""

    title: str
    source: str
    source_stream: str
    target: str
    head: CommitRef
    body: str | None = None
    key: str | None = None


@dataclass(frozen=True, slots=True)
class Commented:
    """Someone said something; numbers are those of the events of other comments."""

    text: str | None = None
    anchor: Anchor | None = None
    replies_to: int | None = None
    resolves: int | None = None


@dataclass(frozen=True, slots=True)
class Reviewed:
    """Someone judged the commit `head` of the source."""

    verdict: Verdict
    head: str
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Checked:
    """A check of the commit `head` of the source ended."""

    name: str
    outcome: CheckOutcome
    head: str
    link: str | None = None


@dataclass(frozen=True, slots=True)
class Retitled:
    """It has another title, and another body if one is given."""

    title: str
    body: str | None = None


@dataclass(frozen=True, slots=True)
class Retargeted:
    """It asks to be merged into another branch."""

    target: str


@dataclass(frozen=True, slots=True)
class Closed:
    """It will not be merged."""

    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Merging:
    """A merge begins: the commit, if it comes, is above this version of the target's stream."""

    head: CommitRef
    base: CommitRef
    target: str
    target_stream: str
    version: int


@dataclass(frozen=True, slots=True)
class Merged:
    """It was merged; `commit` is what the merge made, `counts` what it changed by type."""

    head: str
    target: str
    commit: str
    outcome: str
    counts: dict[str, tuple[int, int, int]] = field(default_factory=dict)


Event: TypeAlias = (
    Opened | Commented | Reviewed | Checked | Retitled | Retargeted | Closed | Merging | Merged
)


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """An event with its number in its proposal, when it happened (µs since 1970), and by whom."""

    number: int
    at_us: int
    actor: str | None
    event: Event


_OPS: Final = {
    Opened: "opened",
    Commented: "commented",
    Reviewed: "reviewed",
    Checked: "checked",
    Retitled: "retitled",
    Retargeted: "retargeted",
    Closed: "closed",
    Merging: "merging",
    Merged: "merged",
}


def encode_event(event: Event, *, at_us: int, actor: str | None) -> dict[str, object]:
    """The fields of an event. The id makes two equal events at one instant different objects."""
    common = {"op": _OPS[type(event)], "id": generate_ulid(), "created_at": at_us, "actor": actor}
    return common | _encode_detail(event)


def _encode_detail(event: Event) -> dict[str, object]:
    match event:
        case Opened():
            names = ("title", "source", "source_stream", "target", "body", "key")
            return {**_collect(event, names), "head": encode_ref(event.head)}
        case Commented():
            anchor = None if event.anchor is None else _encode_anchor(event.anchor)
            return {**_collect(event, ("text", "replies_to", "resolves")), "anchor": anchor}
        case Reviewed():
            return _collect(event, ("verdict", "head", "text"))
        case Checked():
            return _collect(event, ("name", "outcome", "head", "link"))
        case Retitled():
            return _collect(event, ("title", "body"))
        case Retargeted():
            return _collect(event, ("target",))
        case Closed():
            return _collect(event, ("reason",))
        case Merging():
            refs = {"head": encode_ref(event.head), "base": encode_ref(event.base)}
            return {**_collect(event, ("target", "target_stream", "version")), **refs}
        case Merged():
            counts = [_encode_counts(*each) for each in event.counts.items()]
            return {**_collect(event, ("head", "target", "commit", "outcome")), "counts": counts}
        case _:
            assert_never(event)


def _collect(event: Event, names: tuple[str, ...]) -> dict[str, object]:
    return {name: getattr(event, name) for name in names}


def _encode_anchor(anchor: Anchor) -> dict[str, str | None]:
    return {
        "type": anchor.type_name,
        "id": anchor.entity_id,
        "property": anchor.property,
        "side": anchor.side,
    }


def decode_event(number: int, fields: Fields) -> StoredEvent:
    """An event from its fields. One of an unknown kind is refused: it may forbid what follows."""
    return StoredEvent(
        number,
        fields.get_integer("created_at"),
        fields.get_optional_text("actor"),
        _decode_detail(fields),
    )


def _decode_detail(fields: Fields) -> Event:
    text, maybe = fields.get_text, fields.get_optional_text
    match fields.get_text("op"):
        case "opened":
            head = decode_ref(fields.get_child("head"))
            names = text("title"), text("source"), text("source_stream"), text("target")
            return Opened(*names, head, maybe("body"), maybe("key"))
        case "commented":
            numbers = (_get_number(fields, name) for name in ("replies_to", "resolves"))
            return Commented(maybe("text"), _decode_anchor(fields), *numbers)
        case "reviewed":
            verdict = _get_choice(fields, "verdict", Verdict)
            return Reviewed(verdict, text("head"), maybe("text"))
        case "checked":
            outcome = _get_choice(fields, "outcome", CheckOutcome)
            return Checked(text("name"), outcome, text("head"), maybe("link"))
        case "retitled":
            return Retitled(text("title"), maybe("body"))
        case "retargeted":
            return Retargeted(text("target"))
        case "closed":
            return Closed(maybe("reason"))
        case "merging":
            refs = decode_ref(fields.get_child("head")), decode_ref(fields.get_child("base"))
            version = fields.get_integer("version")
            return Merging(*refs, text("target"), text("target_stream"), version)
        case "merged":
            counts = dict(map(_decode_counts, fields.get_children("counts")))
            made = text("commit"), text("outcome")
            return Merged(text("head"), text("target"), *made, counts)
        case unknown:
            return fields.raise_corrupt(f"'{unknown}' is not an event that this program knows")


def _get_number(fields: Fields, name: str) -> int | None:
    return fields.get_integer(name) if fields.has_field(name) else None


def _decode_anchor(fields: Fields) -> Anchor | None:
    if not fields.has_field("anchor"):
        return None
    found = fields.get_child("anchor")
    optional = found.get_optional_text("property"), found.get_optional_text("side")
    return Anchor(found.get_text("type"), found.get_text("id"), *optional)


def _get_choice(fields: Fields, name: str, kind: type[_Choice]) -> _Choice:
    value = fields.get_text(name)
    if value not in set(kind):
        fields.raise_corrupt(f"'{value}' is not a known '{name}'")
    return kind(value)


def _encode_counts(type_key: str, counts: tuple[int, int, int]) -> dict[str, object]:
    return {"type": type_key, **dict(zip(_COUNTS, counts, strict=True))}


def _decode_counts(fields: Fields) -> tuple[str, tuple[int, int, int]]:
    inserted, updated, deleted = map(fields.get_integer, _COUNTS)
    return fields.get_text("type"), (inserted, updated, deleted)
