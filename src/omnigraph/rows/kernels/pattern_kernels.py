"""Functions of patterns, which are those of RE2: a text is matched in linear time."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import re2

from omnigraph.errors import ExecutionError
from omnigraph.lang.quoting import sanitize_text
from omnigraph.rows.kernels.function_call import Argument, FunctionCall, Kernel
from omnigraph.rows.kernels.text_kernels import find_constant

# What a replacement can name.
GROUP_MAX: Final = 9


def require_pattern(pattern: str) -> None:
    """Refuse a text that is not a pattern."""
    _compile_pattern(pattern)


def _compile_pattern(pattern: str) -> Any:  # Any: re2 has no types
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options=options)
    except re2.error as failure:
        raise ExecutionError(
            f"'{sanitize_text(pattern)}' is not a pattern", hint="patterns are those of RE2"
        ) from failure


def _read_pattern(call: FunctionCall) -> str:
    pattern = find_constant(call.arguments[1])
    assert isinstance(pattern, str), "a pattern is a constant, and null is never matched"
    require_pattern(pattern)
    return pattern


def _match_pattern(call: FunctionCall) -> Argument:
    return pc.match_substring_regex(call.arguments[0], pattern=_read_pattern(call))


def _extract_part(call: FunctionCall) -> Argument:
    """The first match, or a group of it: the text of a group that has no part in it is empty."""
    pattern, texts = _read_pattern(call), call.arguments[0]
    group = find_constant(call.arguments[2]) if len(call.arguments) > 2 else 0
    if not 0 <= group <= min(_compile_pattern(pattern).groups, GROUP_MAX):
        return pa.nulls(call.rows, call.result)
    wanted = f"(?:{pattern})" if group else f"({pattern})"
    # The least that can be before a match, so that it is the first one.
    found = pc.replace_substring_regex(
        texts, pattern=f"^(?s:.*?){wanted}(?s:.*)$", replacement=rf"\{group or 1}"
    )
    is_matched = pc.match_substring_regex(texts, pattern=pattern)
    return pc.if_else(is_matched, found, pa.scalar(None, pa.utf8()))


def _replace_pattern(call: FunctionCall) -> Argument:
    """Every match replaced by a text in which a backslash and a digit name a group."""
    pattern, texts = _read_pattern(call), call.read_column(0)
    replacement = find_constant(call.arguments[2])
    times = pc.sum(pc.count_substring_regex(texts, pattern=pattern)).as_py() or 0
    # A group is at most as long as the text that it is found in, and no two matches overlap.
    lengths = pc.binary_length(texts)
    longest, total = pc.max(lengths).as_py() or 0, pc.sum(lengths).as_py() or 0
    groups = replacement.count("\\") * min(times * longest, total)
    call.require_room(times * len(replacement.encode()) + groups)
    try:
        return pc.replace_substring_regex(texts, pattern=pattern, replacement=replacement)
    except pa.ArrowInvalid as failure:
        raise ExecutionError(
            f"'{sanitize_text(replacement)}' cannot replace '{sanitize_text(pattern)}'",
            hint=r"\1 is the first group of the pattern, and \\ a backslash",
        ) from failure


PATTERN_KERNELS: Final[dict[str, Kernel]] = {
    "matches": _match_pattern,
    "extract": _extract_part,
    "regex_replace": _replace_pattern,
}
