"""Simple expressions of mappings as Arrow computations: columns, casts, constants, conditions.

In: the text of an expression of Spark SQL and the Arrow types of the columns. Out: a tree that is
evaluated on record batches, or nothing for an expression that only Spark can evaluate. Guarantee:
the values, and the records for which there is none, are those of Spark.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias, assert_never

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.pipelines.mapping.arrow_casts import CAST_NAMES, Casted, cast_values, is_castable

_TOKENS: Final = re.compile(
    r"""\s*(?:(?P<text>'(?:[^'\\]|\\[\\'nt])*'|"(?:[^"\\]|\\[\\"nt])*")
    |(?P<quoted>`[^`]+`)
    |(?P<decimal>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?D)
    |(?P<integer>\d+L?)(?![\w.])
    |(?P<name>[A-Za-z_]\w*)
    |(?P<sign>::|<>|!=|<=|>=|==|[=<>(),-]))""",
    re.VERBOSE,
)
_ESCAPES: Final = {r"\\": "\\", r"\'": "'", r"\"": '"', r"\n": "\n", r"\t": "\t"}
_ESCAPE: Final = re.compile(r"\\.")
_COMPARISONS: Final[Mapping[str, Callable[[pa.Array, pa.Array], pa.Array]]] = {
    "=": pc.equal,
    "==": pc.equal,
    "<>": pc.not_equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
# Names that may mean something else than a column. `from`, a usual one of edges, never does.
_RESERVED: Final = frozenset(
    (
        *("true", "false", "null", "and", "or", "not", "is", "in", "case", "when", "then", "else"),
        *("end", "cast", "try_cast", "as", "between", "like", "rlike", "ilike", "interval"),
        *("distinct", "div", "exists", "select", "where", "date", "timestamp", "x", "r"),
        *("current_date", "current_timestamp", "current_time", "current_user", "localtimestamp"),
        *("session_user", "user"),
    )
)
_INT64_MAX: Final = 2**63 - 1
_CONCAT: Final = "concat"


@dataclass(frozen=True, slots=True)
class ColumnReference:
    """The value of a column."""

    name: str


@dataclass(frozen=True, slots=True)
class ConstantValue:
    """The same value for every record."""

    value: str | int | float | bool
    type: pa.DataType


@dataclass(frozen=True, slots=True)
class Cast:
    """A value as another type; where there is none the record is refused, or null if tried."""

    value: ArrowExpression
    source: pa.DataType
    target: pa.DataType
    is_tried: bool


@dataclass(frozen=True, slots=True)
class Concatenation:
    """Texts one after the other; null if one of them is."""

    parts: tuple[ArrowExpression, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two values of comparable types."""

    sign: str
    left: ArrowExpression
    right: ArrowExpression


@dataclass(frozen=True, slots=True)
class NullTest:
    """Whether a value is null, or is not."""

    value: ArrowExpression
    is_negated: bool


@dataclass(frozen=True, slots=True)
class Negation:
    """A condition that does not hold."""

    condition: ArrowExpression


@dataclass(frozen=True, slots=True)
class Conjunction:
    """Two conditions, both of which hold, or one of which does."""

    left: ArrowExpression
    right: ArrowExpression
    is_either: bool


ArrowExpression: TypeAlias = (
    ColumnReference
    | ConstantValue
    | Cast
    | Concatenation
    | Comparison
    | NullTest
    | Negation
    | Conjunction
)


@dataclass(frozen=True, slots=True)
class CompiledExpression:
    """An expression, the type of its values, and the columns that it reads."""

    tree: ArrowExpression
    type: pa.DataType
    columns: frozenset[str]
    can_fail: bool


class _NotCompilableError(Exception):
    """Only Spark knows what the expression means."""


def compile_expression(
    sql: str, columns: Mapping[str, pa.DataType], *, is_condition: bool = False
) -> CompiledExpression | None:
    """An expression over columns of these types; None if it is not one of the simple ones."""
    try:
        parser = _Parser(list(_tokenize(sql)), columns)
        found = parser.parse_condition() if is_condition else parser.parse_value()
        parser.require_end()
    except _NotCompilableError:
        return None
    if is_condition and not pa.types.is_boolean(found.type):
        return None
    return found


def _tokenize(sql: str) -> Iterator[tuple[str, str]]:
    place = 0
    while sql[place:].strip():
        found = _TOKENS.match(sql, place)
        if found is None or found.lastgroup is None:
            raise _NotCompilableError
        yield found.lastgroup, found[found.lastgroup]
        place = found.end()


class _Parser:
    """A parser by recursive descent of the part of the language that is compiled."""

    def __init__(
        self, tokens: Sequence[tuple[str, str]], columns: Mapping[str, pa.DataType]
    ) -> None:
        self._tokens = tokens
        self._columns = columns
        self._place = 0

    def require_end(self) -> None:
        """Nothing follows."""
        if self._place < len(self._tokens):
            raise _NotCompilableError

    def parse_condition(self) -> CompiledExpression:
        """Conditions of which one holds."""
        found = self._parse_all()
        while self._take_word("or"):
            found = _join(found, self._parse_all(), is_either=True)
        return found

    def _parse_all(self) -> CompiledExpression:
        found = self._parse_negation()
        while self._take_word("and"):
            found = _join(found, self._parse_negation(), is_either=False)
        return found

    def _parse_negation(self) -> CompiledExpression:
        if self._take_word("not"):
            inner = self._parse_negation()
            _require(pa.types.is_boolean(inner.type))
            return _build(Negation(inner.tree), pa.bool_(), inner)
        return self._parse_comparison()

    def _parse_comparison(self) -> CompiledExpression:
        if self._is_nested_condition():
            self._take_sign("(")
            found = self.parse_condition()
            self._require_sign(")")
            return found
        left = self.parse_value()
        if self._take_word("is"):
            is_negated = self._take_word("not")
            _require(self._take_word("null"))
            return _build(NullTest(left.tree, is_negated), pa.bool_(), left)
        if not (self._peek()[0] == "sign" and self._peek()[1] in _COMPARISONS):
            return left
        sign = self._take_next()[1]
        right = self.parse_value()
        _require(_are_comparable(left.type, right.type))
        return _build(Comparison(sign, left.tree, right.tree), pa.bool_(), left, right)

    def _is_nested_condition(self) -> bool:
        """Whether a parenthesis holds a condition rather than a value."""
        if self._peek() != ("sign", "("):
            return False
        depth = 0
        for kind, text in self._tokens[self._place :]:
            if kind == "sign":
                depth += (text == "(") - (text == ")")
                if depth == 1 and text in _COMPARISONS:
                    return True
            elif depth == 1 and kind == "name" and text.lower() in ("and", "or", "not", "is"):
                return True
            if not depth:
                return False
        return False

    def parse_value(self) -> CompiledExpression:
        """A value, perhaps with a cast after it."""
        found = self._parse_primary()
        while self._take_sign("::"):
            found = _cast(found, self._parse_type(), is_tried=False)
        return found

    def _parse_primary(self) -> CompiledExpression:
        kind, text = self._take_next()
        match kind:
            case "text":
                return _build_constant(
                    _ESCAPE.sub(lambda m: _ESCAPES[m[0]], text[1:-1]), pa.string()
                )
            case "integer":
                return self._parse_integer(text)
            case "decimal":
                return _build_constant(float(text[:-1]), pa.float64())
            case "quoted":
                return self._find_column(text[1:-1])
            case "name":
                return self._parse_named(text)
        if text == "-" and self._peek()[0] == "integer":
            return self._parse_integer(f"-{self._take_next()[1]}")
        _require(text == "(")
        found = self.parse_value()
        self._require_sign(")")
        return found

    def _parse_integer(self, text: str) -> CompiledExpression:
        value = int(text.removesuffix("L"))
        _require(abs(value) <= _INT64_MAX)
        is_long = text.endswith("L") or not -(2**31) <= value < 2**31
        return _build_constant(value, pa.int64() if is_long else pa.int32())

    def _parse_named(self, text: str) -> CompiledExpression:
        word = text.lower()
        if self._peek() == ("sign", "("):
            return self._parse_call(word)
        if word in ("true", "false"):
            return _build_constant(word == "true", pa.bool_())
        _require(word not in _RESERVED)
        return self._find_column(text)

    def _parse_call(self, word: str) -> CompiledExpression:
        self._require_sign("(")
        if word == _CONCAT:
            parts = [self.parse_value()]
            while self._take_sign(","):
                parts.append(self.parse_value())
            self._require_sign(")")
            _require(all(_is_text(part.type) for part in parts))
            tree = Concatenation(tuple(part.tree for part in parts))
            return _build(tree, pa.string(), *parts)
        value = self.parse_value()
        if word in ("cast", "try_cast"):
            _require(self._take_word("as"))
            target = self._parse_type()
        else:
            _require(word in CAST_NAMES)
            target = CAST_NAMES[word]
        self._require_sign(")")
        return _cast(value, target, is_tried=word == "try_cast")

    def _parse_type(self) -> pa.DataType:
        kind, text = self._take_next()
        _require(kind == "name" and text.lower() in CAST_NAMES)
        return CAST_NAMES[text.lower()]

    def _find_column(self, name: str) -> CompiledExpression:
        """A column by its name in any case, as Spark looks it up."""
        found = [each for each in self._columns if each.lower() == name.lower()]
        _require(len(found) == 1)
        type_ = self._columns[found[0]]
        return CompiledExpression(ColumnReference(found[0]), type_, frozenset(found), False)

    def _peek(self) -> tuple[str, str]:
        return self._tokens[self._place] if self._place < len(self._tokens) else ("end", "")

    def _take_next(self) -> tuple[str, str]:
        found = self._peek()
        self._place += 1
        return found

    def _take_sign(self, text: str) -> bool:
        is_next = self._peek() == ("sign", text)
        self._place += is_next
        return is_next

    def _require_sign(self, text: str) -> None:
        _require(self._take_sign(text))

    def _take_word(self, word: str) -> bool:
        kind, text = self._peek()
        is_next = kind == "name" and text.lower() == word
        self._place += is_next
        return is_next


def _require(holds: bool) -> None:
    if not holds:
        raise _NotCompilableError


def _build_constant(value: str | int | float | bool, type_: pa.DataType) -> CompiledExpression:
    return CompiledExpression(ConstantValue(value, type_), type_, frozenset(), False)


def _build(
    tree: ArrowExpression, type_: pa.DataType, *parts: CompiledExpression
) -> CompiledExpression:
    columns = frozenset[str]().union(*(part.columns for part in parts))
    return CompiledExpression(tree, type_, columns, any(part.can_fail for part in parts))


def _join(
    left: CompiledExpression, right: CompiledExpression, *, is_either: bool
) -> CompiledExpression:
    _require(pa.types.is_boolean(left.type) and pa.types.is_boolean(right.type))
    # Spark evaluates the second only where the first does not decide.
    _require(not (left.can_fail or right.can_fail))
    return _build(Conjunction(left.tree, right.tree, is_either), pa.bool_(), left, right)


def _cast(value: CompiledExpression, target: pa.DataType, *, is_tried: bool) -> CompiledExpression:
    _require(is_castable(value.type, target))
    # What fails inside would be null, too.
    _require(not (is_tried and value.can_fail))
    can_fail = not is_tried and not value.type.equals(target)
    tree = Cast(value.tree, value.type, target, is_tried)
    return CompiledExpression(tree, target, value.columns, value.can_fail or can_fail)


def _is_text(type_: pa.DataType) -> bool:
    return bool(pa.types.is_string(type_))


def _are_comparable(left: pa.DataType, right: pa.DataType) -> bool:
    # Numbers with a fraction have orders of their own in Spark.
    if _is_text(left) or _is_text(right):
        return _is_text(left) and _is_text(right)
    if pa.types.is_date32(left) or pa.types.is_boolean(left):
        return bool(left.equals(right))
    return bool(pa.types.is_signed_integer(left) and pa.types.is_signed_integer(right))


def evaluate(tree: ArrowExpression, rows: pa.RecordBatch) -> Casted:
    """The values of an expression for some records, and for which of them it has none."""
    match tree:
        case ColumnReference(name):
            return Casted(rows.column(name), None)
        case ConstantValue(value, type_):
            return Casted(pa.repeat(pa.scalar(value, type_), rows.num_rows), None)
        case Cast(inner, _, target, is_tried):
            found = evaluate(inner, rows)
            made = cast_values(found.values, target)
            return Casted(
                made.values, None if is_tried else _combine_failed(found.failed, made.failed)
            )
        case Concatenation(parts):
            found_parts = [evaluate(part, rows) for part in parts]
            texts = [each.values for each in found_parts]
            joined = pc.binary_join_element_wise(*texts, "", null_handling="emit_null")
            return Casted(joined, _combine_failed(*(each.failed for each in found_parts)))
        case Comparison(sign, left, right):
            one, other = evaluate(left, rows), evaluate(right, rows)
            holds = _COMPARISONS[sign](one.values, other.values)
            # Spark evaluates the second only where the first has a value.
            failed = other.failed
            if failed is not None:
                failed = pc.and_(failed, one.values.is_valid())
            return Casted(holds, _combine_failed(one.failed, failed))
        case NullTest(inner, is_negated):
            found = evaluate(inner, rows)
            is_null = found.values.is_valid() if is_negated else found.values.is_null()
            return Casted(is_null, found.failed)
        case Negation(inner):
            found = evaluate(inner, rows)
            return Casted(pc.invert(found.values), found.failed)
        case Conjunction(left, right, is_either):
            join = pc.or_kleene if is_either else pc.and_kleene
            return Casted(join(evaluate(left, rows).values, evaluate(right, rows).values), None)
        case _:
            assert_never(tree)


def _combine_failed(*masks: pa.Array | None) -> pa.Array | None:
    found = None
    for mask in masks:
        if mask is not None:
            found = mask if found is None else pc.or_(found, mask)
    return found
