"""Every path a graph writes, relative to its root.

    __manifest/format.json                            the format of the graph, created first
    __manifest/branches/{name}/{generation:06}.json   what happened to the name of a branch or a tag
    __manifest/branches/{name}/{generation:06}.tag    the event of this number may create a tag
    __manifest/tags/{tag}/{generation:06}.json        tags of graphs of format 1: only read
    __manifest/holds/{id}.json                        what a merge keeps while it runs
    __manifest/{stream}/{seq:020}.json                records, the commits of one branch
    __manifest/{stream}/checkpoints/{seq:020}.json    the fold of the records up to seq (derived)
    __manifest/{stream}/floors/{seq:020}              older commits of the branch were released
    __manifest/{stream}/past_floors/{seq:020}         floors below the highest one
    __manifest/{stream}/latest.json                   a hint where the stream ends (derived)
    __manifest/changes/{id}.arrow                     change sets too large for a record
    __manifest/schemas/{digest}.json                  accepted schemas, by the hash of their content
    __manifest/cleanup.json                           when the last automatic clean-up began
    __manifest/reserve                                room for the next clean-up, on a full disk
    __manifest/clock/now                              written to see what time the store has
    __manifest/sweeps/{number:020}.json               which unreferenced files may be removed
    __manifest/staging/{load}/{name}                  notes of a bulk load, removed at its end
    __manifest/staging/{load}.units/{name}            its units that are under way
    __manifest/probes/{id}                            written and removed to try out a store
    t/{type}-{life}.lance/                            one table life, managed by Lance
    __pipelines/{pipeline}/…                          what runs of pipelines did, append only
    __proposals/{number:08}/{event:06}.json           what happened to a proposal, append only
    __proposals/index.json                            summaries of proposals (derived)

Numbers have a fixed width, so that the byte order of a listing is their order. A stream's name has
a dot, so that it is never one of the other folders.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import unquote

from omnigraph.errors import ResourceLimitError

MANIFEST = "__manifest"
FORMAT = f"{MANIFEST}/format.json"
BRANCHES = f"{MANIFEST}/branches"
TAGS = f"{MANIFEST}/tags"
LEASES = f"{MANIFEST}/holds"
CHANGES = f"{MANIFEST}/changes"
SCHEMAS = f"{MANIFEST}/schemas"
CLEANUP = f"{MANIFEST}/cleanup.json"
RESERVE = f"{MANIFEST}/reserve"
CLOCK_FOLDER = f"{MANIFEST}/clock"
CLOCK = f"{CLOCK_FOLDER}/now"
SWEEPS = f"{MANIFEST}/sweeps"
PROBES = f"{MANIFEST}/probes"
STAGING = f"{MANIFEST}/staging"
TABLES = "t"
PIPELINES = "__pipelines"
PROPOSALS = "__proposals"
PROPOSAL_INDEX = f"{PROPOSALS}/index.json"

# How much of a branch's name its stream repeats, for the eyes of people only.
_STREAM_HINT_MAX = 40

# Capitals too, because some file systems hold 'Review' and 'review' for one name.
_ESCAPED = re.compile(r"[^a-z0-9_.-]|^\.")
_RECORD = re.compile(r"__manifest/[^/]+\.[^/]+/(\d{20})\.json")
_CHECKPOINT = re.compile(r"__manifest/[^/]+\.[^/]+/checkpoints/(\d{20})\.json")
_REF_EVENT = re.compile(r"__manifest/branches/([^/]+)/(\d{6})\.json")
_ANNOUNCEMENT = re.compile(r"__manifest/branches/([^/]+)/(\d{6})\.tag")
_TAG_EVENT = re.compile(r"__manifest/tags/([^/]+)/(\d{6})\.json")
_FLOOR = re.compile(r"__manifest/[^/]+\.[^/]+/(?:past_)?floors/(\d{20})")
_PROPOSAL_EVENT = re.compile(r"__proposals/(\d{8})/(\d{6})\.json")
_SWEEP = re.compile(r"__manifest/sweeps/(\d{20})\.json")

# The longest file name of ext4, XFS and APFS, and what S3 leaves of its 1,024 bytes for a root.
SEGMENT_BYTES_MAX = 255
PATH_BYTES_MAX = 800

# Local stores write under such a name first; no object may have it.
TEMPORARY_PREFIX = ".tmp-"

# Object stores refuse control characters and what XML cannot say; lone surrogates have no UTF-8.
_FORBIDDEN = re.compile("[\x00-\x1f\x7f\ud800-\udfff\ufffe\uffff]")


def build_branch_folder(branch: str) -> str:
    """The folder of the ref events of a name: one segment, however the name nests."""
    return f"{BRANCHES}/{_escape_segment('branch', branch)}"


def build_ref_event_path(branch: str, generation: int) -> str:
    """One event in the life of the name of a branch or a tag."""
    return f"{build_branch_folder(branch)}/{_format_number(generation, digits=6)}.json"


def build_tag_announcement_path(tag: str, generation: int) -> str:
    """The object that is put before an event which creates a tag."""
    return f"{build_branch_folder(tag)}/{_format_number(generation, digits=6)}.tag"


def build_tag_folder(tag: str) -> str:
    """The folder of the events of a tag that has a chain of its own."""
    return f"{TAGS}/{_escape_segment('tag', tag)}"


def build_tag_event_path(tag: str, generation: int) -> str:
    """One event of a tag that has a chain of its own."""
    return f"{build_tag_folder(tag)}/{_format_number(generation, digits=6)}.json"


def build_stream_name(branch: str, token: str) -> str:
    """A stream for a branch: the token makes it unique, the name in front is for people only."""
    hint = re.sub(r"[^a-z0-9]+", "-", branch.lower())[:_STREAM_HINT_MAX].strip("-")
    return f"{hint or 'branch'}.{token}"


def build_stream_folder(stream: str) -> str:
    """The folder of a stream's records."""
    return f"{MANIFEST}/{stream}"


def build_record_path(stream: str, seq: int) -> str:
    """The record of one commit."""
    return f"{MANIFEST}/{stream}/{_format_number(seq, digits=20)}.json"


def build_checkpoint_folder(stream: str) -> str:
    """The folder of a stream's checkpoints."""
    return f"{MANIFEST}/{stream}/checkpoints"


def build_checkpoint_path(stream: str, seq: int) -> str:
    """The fold of a stream's records up to one of them."""
    return f"{build_checkpoint_folder(stream)}/{_format_number(seq, digits=20)}.json"


def build_floor_folder(stream: str) -> str:
    """The folder of the retention floors of a branch."""
    return f"{MANIFEST}/{stream}/floors"


def build_floor_path(stream: str, seq: int) -> str:
    """The retention floor of a branch: the commits below it are released."""
    return f"{build_floor_folder(stream)}/{_format_number(seq, digits=20)}"


def build_past_floor_folder(stream: str) -> str:
    """The folder of the floors of a branch that a higher one followed."""
    return f"{MANIFEST}/{stream}/past_floors"


def build_past_floor_path(stream: str, seq: int) -> str:
    """The place of a floor that a higher one followed."""
    return f"{build_past_floor_folder(stream)}/{_format_number(seq, digits=20)}"


def build_sweep_path(number: int) -> str:
    """The statement which unreferenced files a collector may be removing."""
    return f"{SWEEPS}/{_format_number(number, digits=20)}.json"


def build_hint_path(stream: str) -> str:
    """The hint where a stream ended when it was last read."""
    return f"{MANIFEST}/{stream}/latest.json"


def build_change_set_path(change_set_id: str) -> str:
    """A change set that is too large for its record."""
    return f"{CHANGES}/{change_set_id}.arrow"


def build_schema_path(digest: str) -> str:
    """An accepted schema by the identity its records carry, such as `sha256:…`."""
    return f"{SCHEMAS}/{digest.rpartition(':')[2]}.json"


def build_lease_path(hold_id: str) -> str:
    """The path of a hold."""
    return f"{LEASES}/{hold_id}.json"


def build_staging_folder(load_id: str) -> str:
    """The folder through which the tasks of a bulk load exchange results."""
    return f"{STAGING}/{load_id}"


def build_splits_folder(staging: str) -> str:
    """The folder that lists the running splits of a bulk load, beside its staging folder."""
    return f"{staging}.units"


def build_probe_path(probe_id: str) -> str:
    """An object that is written and removed to try out a store."""
    return f"{PROBES}/{probe_id}"


def build_proposal_folder(number: int) -> str:
    """The folder of the events of a proposal."""
    return f"{PROPOSALS}/{_format_number(number, digits=8)}"


def build_proposal_event_path(number: int, event: int) -> str:
    """One event of a proposal."""
    return f"{build_proposal_folder(number)}/{_format_number(event, digits=6)}.json"


def build_table_path(type_key: str, life: str) -> str:
    """The Lance dataset of a type such as `node:Person`; a recreated type starts another life."""
    return f"{TABLES}/{type_key.rpartition(':')[2]}-{life}.lance"


def parse_record_path(path: str) -> int | None:
    """The seq of a record's path, or None for any other path."""
    found = _RECORD.fullmatch(path)
    return int(found[1]) if found else None


def parse_checkpoint_path(path: str) -> int | None:
    """The seq of a checkpoint's path, or None for any other path."""
    found = _CHECKPOINT.fullmatch(path)
    return int(found[1]) if found else None


def parse_ref_event_path(path: str) -> tuple[str, int] | None:
    """The branch and the generation of a ref event's path, or None for any other path."""
    found = _REF_EVENT.fullmatch(path)
    return (unquote(found[1]), int(found[2])) if found else None


def parse_tag_announcement_path(path: str) -> tuple[str, int] | None:
    """The tag and the generation that a path announces, or None for any other path."""
    found = _ANNOUNCEMENT.fullmatch(path)
    return (unquote(found[1]), int(found[2])) if found else None


def parse_tag_event_path(path: str) -> tuple[str, int] | None:
    """The tag and the generation of a tag event's path, or None for any other path."""
    found = _TAG_EVENT.fullmatch(path)
    return (unquote(found[1]), int(found[2])) if found else None


def parse_proposal_event_path(path: str) -> tuple[int, int] | None:
    """The proposal and the number of an event's path, or None for any other path."""
    found = _PROPOSAL_EVENT.fullmatch(path)
    return (int(found[1]), int(found[2])) if found else None


def parse_floor_path(path: str) -> int | None:
    """The seq of a floor's path, also of a past one, or None for any other path."""
    found = _FLOOR.fullmatch(path)
    return int(found[1]) if found else None


def parse_sweep_path(path: str) -> int | None:
    """The number of a sweep's path, or None for any other path."""
    found = _SWEEP.fullmatch(path)
    return int(found[1]) if found else None


def has_digest_inside(path: str) -> bool:
    """Whether a path of the manifest folder is that of a lasting object that begins with a digest.

    Schemas are named by theirs, and records have those of change sets. Hints, leases and notes are
    soon replaced or removed.
    """
    parsers = (
        parse_record_path,
        parse_checkpoint_path,
        parse_ref_event_path,
        parse_tag_announcement_path,
        parse_floor_path,
        parse_sweep_path,
    )
    return path == FORMAT or any(parse(path) is not None for parse in parsers)


def find_first_path(path: str) -> str:
    """The path that an object was created at, which its digest covers: floors are moved."""
    return path.replace("/past_floors/", "/floors/")


def is_of_table(path: str) -> bool:
    """Whether a path belongs to a table."""
    return path.startswith(f"{TABLES}/")


def stream_of(path: str) -> str | None:
    """The stream whose folder holds a path, or None for paths elsewhere."""
    top, _, rest = path.partition("/")
    name, is_below, _ = rest.partition("/")
    return name if top == MANIFEST and is_below and "." in name else None


def _escape_segment(noun: str, name: str) -> str:
    escaped = _escape(name)
    if len(escaped) > SEGMENT_BYTES_MAX:
        raise ResourceLimitError(
            f"the stored length of a {noun} name",
            limit=SEGMENT_BYTES_MAX,
            actual=len(escaped),
            hint="use a shorter name; only a-z, 0-9, '.', '_' and '-' are stored as one character",
        )
    return escaped


def _escape(name: str) -> str:
    return _ESCAPED.sub(lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode()), name)


def _format_number(value: int, *, digits: int) -> str:
    # One digit more would sort below its predecessors, and a probe would never find it.
    if not 0 <= value < 10**digits:
        raise ResourceLimitError("a number in a path", limit=10**digits - 1, actual=value)
    return f"{value:0{digits}}"


@dataclass(frozen=True, slots=True)
class Entry:
    """One listed object: its path, its size in bytes, and when it was written (epoch seconds)."""

    path: str
    size: int
    modified: float


def require_path(path: str) -> str:
    """The path itself; a path that some store could not hold is a bug of the caller."""
    if _FORBIDDEN.search(path):
        raise ValueError(f"object path {path!r} has a character that stores refuse")
    if len(path.encode()) > PATH_BYTES_MAX:
        raise ValueError(f"object path {path!r} is longer than {PATH_BYTES_MAX} bytes")
    for segment in path.split("/"):
        if segment in ("", ".", ".."):
            raise ValueError(f"object path {path!r} has the segment {segment!r}")
        if len(segment.encode()) > SEGMENT_BYTES_MAX:
            raise ValueError(f"object path {path!r} has a segment over {SEGMENT_BYTES_MAX} bytes")
        if segment.startswith(TEMPORARY_PREFIX):
            raise ValueError(f"object path {path!r} has the name of a temporary file")
    return path


def require_folder(prefix: str) -> str:
    """A folder to list, without its closing slash; the empty folder is the whole store."""
    folder = prefix.removesuffix("/")
    return require_path(folder) if folder else ""
