"""SQL conditions on properties, as tables evaluate them: with the names of their columns.

Spark's own filters are only pushed down where a table returns at least the rows of Spark,
which filters again.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from omnigraph.errors import InvalidArgumentError
from omnigraph.lang.spellcheck import suggest_similar

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter

_TOKENS: Final = re.compile(
    r"""(?P<text>'(?:[^']|'')*')
    |(?P<quoted>`[^`]+`|"[^"]+")
    |(?P<number>\d[\w.]*)
    |(?P<word>@?[^\W\d]\w*)
    |(?P<other>\s+|.)""",
    re.VERBOSE | re.DOTALL,
)
# What stands in a condition beside names, in lower case.
_WORDS: Final = frozenset(
    re.findall(
        r"\w+",
        """and or not in is null true false between like ilike similar to escape case when then else
        end cast as distinct from date timestamp interval int integer bigint smallint float double
        real boolean string varchar text decimal unsigned""",
    )
)
_OPERATORS: Final = {
    "EqualTo": "=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
}
_IN_MAX: Final = 1_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def translate_condition(text: str, columns: Mapping[str, str]) -> str:
    """A condition on properties as one on the columns that hold them."""
    parts = []
    for token in _TOKENS.finditer(text):
        match token.lastgroup:
            case "quoted":
                parts.append(_resolve_column(token[0][1:-1], columns))
            case "word":
                parts.append(_translate_word(token[0], text[token.end() :], columns))
            case _:
                parts.append(token[0])
    return "".join(parts)


def translate_filter(asked: Filter, kinds: Mapping[str, tuple[str, pa.DataType]]) -> str | None:
    """A filter of Spark for a table; None where only Spark can evaluate it.

    `kinds` are the column and the type of each property.
    """
    path: tuple[str, ...] = getattr(asked, "attribute", ())
    if len(path) != 1 or path[0] not in kinds:
        return None
    column, kind = kinds[path[0]]
    name, operator = f"`{column}`", _OPERATORS.get(type(asked).__name__)
    if operator is not None:
        literal = _format_literal(getattr(asked, "value", None), kind)
        return None if literal is None else f"{name} {operator} {literal}"
    match type(asked).__name__:
        case "IsNull":
            return f"{name} IS NULL"
        case "IsNotNull":
            return f"{name} IS NOT NULL"
        case "In":
            return _build_in_list(name, getattr(asked, "value", ()), kind)
        case "StringStartsWith" if pa.types.is_string(kind):
            literal = _format_literal(getattr(asked, "value", None), kind)
            return None if literal is None else f"starts_with({name}, {literal})"
        case _:
            return None


def _translate_word(word: str, rest: str, columns: Mapping[str, str]) -> str:
    following = rest.lstrip()
    is_call = following.startswith("(") and word.lower() != "in"
    # As in `date '2026-01-31'`.
    is_prefix = following.startswith("'") and word.lower() in _WORDS
    if word in columns and not (is_call or is_prefix):
        return _resolve_column(word, columns)
    if is_call or word.lower() in _WORDS:
        return word
    return _resolve_column(word, columns)


def _resolve_column(name: str, columns: Mapping[str, str]) -> str:
    if name not in columns:
        raise InvalidArgumentError(
            "filter", f"there is no property '{name}'", hint=suggest_similar(name, list(columns))
        )
    return f"`{columns[name]}`"


def _build_in_list(name: str, values: Sequence[Any], kind: pa.DataType) -> str | None:
    literals = [_format_literal(value, kind) for value in values if value is not None]
    if not literals or None in literals or len(literals) > _IN_MAX:
        return None
    return f"{name} IN ({', '.join(filter(None, literals))})"


def _format_literal(value: Any, kind: pa.DataType) -> str | None:
    """A constant of a column's type; None where Spark and a table might disagree about it."""
    match value:
        case bool():
            return ("true" if value else "false") if pa.types.is_boolean(kind) else None
        case str() if pa.types.is_string(kind):
            return "'" + value.replace("'", "''") + "'"
        case int() | Decimal() if pa.types.is_integer(kind):
            whole = int(value)
            return str(whole) if whole == value and -(2**63) < whole < 2**63 else None
        case float() if pa.types.is_floating(kind):
            # Tables keep the two zeros apart.
            return repr(value) if math.isfinite(value) and value != 0 else None
        case datetime() if pa.types.is_date64(kind) and value.tzinfo is not None:
            whole, rest = divmod(value - _EPOCH, timedelta(milliseconds=1))
            return None if rest else f"arrow_cast({whole}, 'Date64')"
        case date() if pa.types.is_date32(kind) and not isinstance(value, datetime):
            return f"arrow_cast({(value - date(1970, 1, 1)).days}, 'Date32')"
        case _:
            return None
