"""What functions need of arguments that are constants: patterns, units, lengths of vectors."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

import re2

from omnigraph.lang.quoting import sanitize_text
from omnigraph.lang.spellcheck import suggest_similar
from omnigraph.query import ast, typed_tree
from omnigraph.query.check.check_context import CheckContext
from omnigraph.query.check.check_literals import scalar_of
from omnigraph.schema.property_types import PropertyType, Scalar, VectorType

_DATE_UNITS: Final = ("year", "quarter", "month", "week", "day")
_TIME_UNITS: Final = (*_DATE_UNITS, "hour", "minute", "second")
# What a replacement can name: a backslash and one digit.
_GROUP_MAX: Final = 9
_ESCAPE: Final = re.compile(r"\\.?", re.DOTALL)


def check_constant_arguments(
    context: CheckContext, call: ast.FunctionCall, found: typed_tree.FunctionValue
) -> bool:
    """Whether the constants among the arguments of a call are what it needs; reports it if not."""
    check = _CHECKS.get(call.name)
    return check is None or check(context, call, found.arguments)


def _check_pattern(
    context: CheckContext, call: ast.FunctionCall, arguments: Sequence[typed_tree.Expr]
) -> bool:
    """A pattern is a literal that can be matched in linear time, or a parameter."""
    words = ("pattern", "group" if call.name == "extract" else "replacement")
    for place, (value, word) in enumerate(zip(arguments[1:], words, strict=False), 1):
        if not isinstance(value, typed_tree.ParameterValue | typed_tree.Constant):
            span = call.arguments[place].span
            context.report_error("T114", span, f"a {word} is a literal or a parameter")
            return False
    pattern = _get_constant(arguments, 1)
    if pattern is None:
        return True
    compiled = _compile_pattern(context, call, str(pattern))
    if compiled is None:
        return False
    if call.name == "extract":
        return _check_group(context, call, arguments, compiled.groups)
    return call.name == "matches" or _check_replacement(context, call, arguments, compiled.groups)


def _get_constant(arguments: Sequence[typed_tree.Expr], place: int) -> typed_tree.Value:
    """The value of a literal; None of anything else."""
    value = arguments[place] if place < len(arguments) else None
    return value.value if isinstance(value, typed_tree.Constant) else None


def _compile_pattern(
    context: CheckContext, call: ast.FunctionCall, pattern: str
) -> Any:  # Any: re2 has no types
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options=options)
    except re2.error as failure:
        message = f"not a pattern of RE2: {_format_reason(failure)}"
        context.report_error("T114", call.arguments[1].span, message)
        return None


def _format_reason(failure: re2.error) -> str:
    reason = failure.args[0] if failure.args else ""
    return reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)


def _check_group(
    context: CheckContext,
    call: ast.FunctionCall,
    arguments: Sequence[typed_tree.Expr],
    groups: int,
) -> bool:
    group = _get_constant(arguments, 2)
    limit = min(groups, _GROUP_MAX)
    if not isinstance(group, int) or 0 <= group <= limit:
        return True
    message = f"the groups of this pattern are 0 to {limit}; there is no group {group}"
    context.report_error("T112", call.arguments[2].span, message)
    return False


def _check_replacement(
    context: CheckContext,
    call: ast.FunctionCall,
    arguments: Sequence[typed_tree.Expr],
    groups: int,
) -> bool:
    """A backslash is followed by the number of a group, or by another one."""
    replacement = _get_constant(arguments, 2)
    if not isinstance(replacement, str):
        return True
    wrong = [each for each in _ESCAPE.findall(replacement) if not _is_escape(each, groups)]
    if wrong:
        message = f"'{sanitize_text(wrong[0])}' is not a group of the pattern, which has {groups}"
        hint = r"in a text \\0 is the whole match, \\1 the first group, \\\\ a backslash"
        context.report_error("T114", call.arguments[2].span, message, hint=hint)
    return not wrong


def _is_escape(text: str, groups: int) -> bool:
    return text == r"\\" or (text[1:].isdecimal() and int(text[1:]) <= groups)


def _check_unit(
    context: CheckContext, call: ast.FunctionCall, arguments: Sequence[typed_tree.Expr]
) -> bool:
    units = _DATE_UNITS if scalar_of(arguments[0]) is Scalar.DATE else _TIME_UNITS
    unit = _get_constant(arguments, 1)
    if unit in units:
        return True
    context.report_error(
        "T112",
        call.arguments[1].span,
        f"the unit of trunc() is one of {', '.join(units)}",
        hint=suggest_similar(unit, units) if isinstance(unit, str) else "write it as a literal",
    )
    return False


def _check_lengths(
    context: CheckContext, call: ast.FunctionCall, arguments: Sequence[typed_tree.Expr]
) -> bool:
    lengths = [found for each in arguments if (found := _length_of(each)) is not None]
    if len(set(lengths)) <= 1:
        return True
    shown = " and ".join(map(str, lengths))
    message = f"{call.name}() needs vectors of one length; got {shown} numbers"
    context.report_error("T15", call.span, message)
    return False


def _check_highlight(
    context: CheckContext, call: ast.FunctionCall, arguments: Sequence[typed_tree.Expr]
) -> bool:
    """All but the text are the same at every row."""
    if not all(
        isinstance(each, typed_tree.ParameterValue | typed_tree.Constant) for each in arguments[1:]
    ):
        message = "highlight() takes literals and parameters after the text"
        context.report_error("T112", call.span, message)
        return False
    words = _get_constant(arguments, 4)
    if isinstance(words, int) and words < 1:
        context.report_error("T112", call.span, "highlight() shows at least one word")
        return False
    return True


def _length_of(value: typed_tree.Expr) -> int | None:
    """How many numbers a vector has, if that is known."""
    if isinstance(value.type, PropertyType) and isinstance(value.type.value, VectorType):
        return value.type.value.dimension
    match value:
        case typed_tree.Constant(tuple(items)) | typed_tree.ListOf(items):
            return len(items)
        case _:
            return None


_Check = Callable[[CheckContext, ast.FunctionCall, Sequence[typed_tree.Expr]], bool]
_CHECKS: Final[dict[str, _Check]] = {
    **dict.fromkeys(("matches", "extract", "regex_replace"), _check_pattern),
    **dict.fromkeys(("l2", "cosine", "dot"), _check_lengths),
    "trunc": _check_unit,
    "highlight": _check_highlight,
}
