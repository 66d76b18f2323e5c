"""Functions of values and arithmetic: which signature a call has, and the type of its result.

Each function takes operands that may be None, which means that they are wrong and have been
reported; it then says nothing more about them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from omnigraph.lang.source_text import Span
from omnigraph.query import ast, typed_tree
from omnigraph.query.check.check_constant_arguments import check_constant_arguments
from omnigraph.query.check.check_context import CheckContext
from omnigraph.query.check.check_literals import build_negative, is_empty_list, scalar_of
from omnigraph.query.check.check_operators import Operand, check_boolean, element_of
from omnigraph.query.check.check_path_calls import PATH_FUNCTIONS, check_path_call
from omnigraph.query.function_signatures import SIGNATURES, FunctionParameter, Signature
from omnigraph.schema.property_types import (
    FLOATS,
    INTEGERS,
    NUMERIC,
    ListType,
    PropertyType,
    Scalar,
    VectorType,
    make_scalar_type,
)

_KINDS: Final = {
    "number": NUMERIC,
    "integer": INTEGERS,
    "text": {Scalar.STRING},
    "bool": {Scalar.BOOL},
    "date": {Scalar.DATE},
    "time": {Scalar.DATETIME},
    "moment": {Scalar.DATE, Scalar.DATETIME},
    "duration": {Scalar.DURATION},
}
_RESULTS: Final = {
    "I64": make_scalar_type(Scalar.I64),
    "F64": typed_tree.F64,
    "text": typed_tree.STRING,
    "bool": typed_tree.BOOL,
    "date": make_scalar_type(Scalar.DATE),
    "datetime": typed_tree.DATETIME,
    "duration": make_scalar_type(Scalar.DURATION),
    "texts": PropertyType(ListType(Scalar.STRING)),
    "integers": PropertyType(ListType(Scalar.I64)),
}
_U64: Final = make_scalar_type(Scalar.U64)
_UNSIGNED: Final = {Scalar.U32, Scalar.U64}
# They compare their arguments, which lists are not made for.
_COMPARING: Final = frozenset({"least", "greatest", "nullif"})
_NEEDS: Final = {
    "+": "two numbers, texts, lists or durations, or a date and days, or a time and a duration",
    "-": "two numbers, dates, times or durations, or a date and days, or a time and a duration",
    "*": "two numbers, or a duration and an integer",
    "/": "two numbers, or two durations",
    "%": "two integers",
    "minus": "a number or a duration",
}
_ARGUMENTS_SHOWN: Final = 4


def check_call(
    context: CheckContext,
    call: ast.FunctionCall,
    arguments: Sequence[typed_tree.Expr | None],
    options: Mapping[str, typed_tree.Expr | None],
) -> typed_tree.Expr | None:
    """`name(a, b, option: c)`."""
    signatures = SIGNATURES.get(call.name)
    if not _check_options(context, call, signatures or ()) or None in options.values():
        return None
    known = [each for each in arguments if each is not None]
    if signatures is None or len(known) < len(arguments):
        # An unknown name has been reported where it was read.
        return None
    fitting = [each for each in signatures if each.find_parameters(len(known)) is not None]
    if not fitting:
        shown = " or ".join(map(str, signatures))
        context.report_error("T111", call.span, f"{shown} cannot take {len(known)} arguments")
        return None
    if known and isinstance(known[0], typed_tree.PathValue) and call.name in PATH_FUNCTIONS:
        return check_path_call(context, call, known[0])
    if call.name == "today":
        return typed_tree.FunctionValue("date", (typed_tree.NowValue(),), _RESULTS["date"])
    for signature in fitting:
        chosen = [options.get(each.name) or NULL for each in signature.options]
        found = _apply(signature, [*known, *chosen])
        if found is not None:
            return found if check_constant_arguments(context, call, found) else None
    _refuse_arguments(context, call, fitting, [*known, *_list_given(options)])
    return None


def _list_given(options: Mapping[str, typed_tree.Expr | None]) -> list[typed_tree.Expr]:
    return [each for each in options.values() if each is not None]


def _check_options(
    context: CheckContext, call: ast.FunctionCall, signatures: Iterable[Signature]
) -> bool:
    """Whether a function has all options that a call names, each once."""
    known = {option.name for each in signatures for option in each.options}
    names: set[str] = set()
    is_right = True
    for each in call.options:
        name = each.name.text
        if name not in known or name in names:
            problem = "is given twice" if name in known else "is not an option"
            context.report_error(
                "T111",
                each.name.span,
                f"'{name}' {problem} of {call.name}()",
                hint=context.suggest_similar(name, sorted(known)),
            )
            is_right = False
        names.add(name)
    return is_right


def check_arithmetic(
    context: CheckContext,
    expr: ast.Arithmetic,
    left: typed_tree.Expr | None,
    right: typed_tree.Expr | None,
) -> typed_tree.Expr | None:
    """`left op right`."""
    if left is None or right is None:
        return None
    return _check_operands(context, str(expr.op), [left, right], expr.span)


def check_minus(
    context: CheckContext, expr: ast.Minus, operand: typed_tree.Expr | None
) -> typed_tree.Expr | None:
    """`-operand`; of a literal, a literal."""
    if operand is None:
        return None
    if isinstance(operand, typed_tree.Constant) and not is_null(operand):
        return build_negative(context, operand, expr.span)
    return _check_operands(context, "minus", [operand], expr.span)


def check_case(
    context: CheckContext,
    branches: Sequence[tuple[Operand, Operand]],
    otherwise: Operand,
    span: Span,
) -> typed_tree.Expr | None:
    """`case { … }`; without `else`, null is what else there is."""
    tests = [check_boolean(context, test, "a condition of 'case'") for test, _ in branches]
    values = [value for _, (value, _) in branches]
    parts: list[typed_tree.Expr] = []
    for test, value in zip(tests, values, strict=True):
        if test is None or value is None:
            return None
        parts += (test, value)
    if otherwise[0] is None:
        return None
    known = [*(value for value in values if value is not None), otherwise[0]]
    type_ = find_common_type(known)
    if type_ is None:
        _refuse_mixture(context, "the values of 'case'", known, span)
        return None
    return typed_tree.FunctionValue("case", (*parts, otherwise[0]), type_)


NULL: Final = typed_tree.Constant(None, typed_tree.STRING.as_nullable())


def find_common_type(values: Sequence[typed_tree.Expr]) -> PropertyType | None:
    """The type that holds all of some values; None if there is none. Null has every type."""
    known = [each for each in values if not is_null(each)]
    if not known:
        return NULL.type
    found: PropertyType | None = None
    for each in known:
        if isinstance(each.type, typed_tree.NodeObject) or each.type.is_blob:
            return None
        found = each.type if found is None else _merge(found, each.type)
        if found is None:
            return None
    assert found is not None
    if may_not_fit(found, known) and all(map(_is_unsigned, known)):
        found = _U64
    is_nullable = any(map(_is_nullable, values)) or may_not_fit(found, known)
    return found.as_nullable(is_nullable)


def may_not_fit(type_: PropertyType, values: Iterable[typed_tree.Expr]) -> bool:
    """Whether one of the values of a common type may be beyond it."""
    return type_.scalar is Scalar.I64 and any(scalar_of(each) is Scalar.U64 for each in values)


def _is_unsigned(value: typed_tree.Expr) -> bool:
    """Whether no value of an integer expression is below zero."""
    if isinstance(value, typed_tree.Constant):
        return isinstance(value.value, int) and value.value >= 0
    return scalar_of(value) in _UNSIGNED


def is_null(value: typed_tree.Expr) -> bool:
    """Whether this is the literal `null`."""
    return isinstance(value, typed_tree.Constant) and value.value is None


def _merge(first: PropertyType, second: PropertyType) -> PropertyType | None:
    if first.value == second.value:
        return first
    scalars = {first.scalar, second.scalar}
    if scalars <= NUMERIC:
        return _RESULTS["I64" if scalars <= INTEGERS else "F64"]
    return typed_tree.STRING if scalars == {Scalar.STRING} else None


# ---- signatures ----


def _apply(
    signature: Signature, arguments: list[typed_tree.Expr]
) -> typed_tree.FunctionValue | None:
    """The call by one signature, or None if it does not fit."""
    parameters = signature.find_parameters(len(arguments) - len(signature.options))
    assert parameters is not None
    parameters = (*parameters, *signature.options)
    if not all(map(_fits, parameters, arguments)) or not _have_alike_items(arguments):
        return None
    alike = [
        argument
        for parameter, argument in zip(parameters, arguments, strict=True)
        if parameter.kind in ("any", "same")
    ]
    common = find_common_type(alike) if alike else None
    if alike and (common is None or (signature.name in _COMPARING and common.scalar is None)):
        return None
    result = _find_result(signature, arguments, common)
    if result is None:
        return None
    can_fault = signature.can_fault or (bool(alike) and may_not_fit(result, alike))
    is_nullable = can_fault or _is_result_nullable(signature, parameters, arguments)
    return typed_tree.FunctionValue(
        signature.name, tuple(arguments), result.as_nullable(is_nullable)
    )


def _fits(parameter: FunctionParameter, argument: typed_tree.Expr) -> bool:
    if isinstance(argument.type, typed_tree.NodeObject) or argument.type.is_blob:
        return False
    if is_null(argument):
        return True
    match parameter.kind:
        case "any" | "same":
            return True
        case "texts":
            return element_of(argument) is Scalar.STRING
        case "list":
            return element_of(argument) is not None
        case "vector":
            return _is_vector(argument)
        case "value":
            return scalar_of(argument) is not None
        case "path":
            return False
        case kind:
            return scalar_of(argument) in _KINDS[kind]


def _is_vector(argument: typed_tree.Expr) -> bool:
    assert isinstance(argument.type, PropertyType)
    return isinstance(argument.type.value, VectorType) or element_of(argument) in NUMERIC


def _have_alike_items(arguments: Sequence[typed_tree.Expr]) -> bool:
    """Whether all lists hold integers, all of them floats, or all of them values of one type."""
    elements = _list_elements(arguments)
    return len(elements) <= 1 or elements <= INTEGERS or elements <= FLOATS


def _list_elements(arguments: Iterable[typed_tree.Expr]) -> set[Scalar]:
    """The types of the items of lists; an empty one has none."""
    elements = {element_of(each) for each in arguments if not is_empty_list(each)}
    return {each for each in elements if each is not None}


def _find_result(
    signature: Signature, arguments: Sequence[typed_tree.Expr], common: PropertyType | None
) -> PropertyType | None:
    match signature.result:
        case "same":
            assert common is not None
            # What is null for being equal is not one of the values that do not fit.
            is_own = signature.name == "nullif" and may_not_fit(common, arguments[:1])
            return _U64 if is_own else common
        case "element":
            element = element_of(arguments[0])
            return make_scalar_type(element) if element is not None else typed_tree.STRING
        case "first":
            assert isinstance(arguments[0].type, PropertyType)
            return arguments[0].type
        case "joined":
            return _join_lists(arguments)
        case "number":
            numbers = {scalar_of(each) for each in arguments if not is_null(each)}
            return _RESULTS["I64" if numbers <= INTEGERS else "F64"]
        case name:
            return _RESULTS[name]


def _join_lists(lists: Sequence[typed_tree.Expr]) -> PropertyType | None:
    """The type of alike lists together; None if it could not hold the items of all of them."""
    elements = _list_elements(lists)
    if len(elements) <= 1:
        return PropertyType(ListType(elements.pop() if elements else Scalar.STRING))
    if elements <= FLOATS:
        return PropertyType(ListType(Scalar.F64))
    if Scalar.U64 not in elements:
        return _RESULTS["integers"]
    return PropertyType(ListType(Scalar.U64)) if all(map(_has_no_negative, lists)) else None


def _has_no_negative(integers: typed_tree.Expr) -> bool:
    if isinstance(integers, typed_tree.Constant) and isinstance(integers.value, tuple):
        return all(isinstance(each, int) and each >= 0 for each in integers.value)
    return element_of(integers) in _UNSIGNED


def _is_result_nullable(
    signature: Signature,
    parameters: Iterable[FunctionParameter],
    arguments: Sequence[typed_tree.Expr],
) -> bool:
    if signature.name in ("coalesce", "least", "greatest"):
        return all(map(_is_nullable, arguments))
    taken = zip(parameters, arguments, strict=True)
    if signature.name == "if":
        return any(_is_nullable(each) for each in arguments[1:])
    return any(_is_nullable(each) for parameter, each in taken if not parameter.is_null_taken)


def _is_nullable(value: typed_tree.Expr) -> bool:
    return isinstance(value.type, PropertyType) and value.type.is_nullable


# ---- errors ----


def _check_operands(
    context: CheckContext, name: str, operands: list[typed_tree.Expr], span: Span
) -> typed_tree.Expr | None:
    for signature in SIGNATURES[name]:
        found = _apply(signature, operands)
        if found is not None:
            return found
    got = " and ".join(_name_type(each) for each in operands)
    sign = "-" if name == "minus" else name
    context.report_error("T110", span, f"'{sign}' needs {_NEEDS[name]}; got {got}")
    return None


def _refuse_arguments(
    context: CheckContext,
    call: ast.FunctionCall,
    signatures: Sequence[Signature],
    arguments: Sequence[typed_tree.Expr],
) -> None:
    kinds = {each.kind for signature in signatures for each in signature.parameters}
    is_mixture = "same" in kinds and all(
        isinstance(each.type, PropertyType) and each.type.scalar not in (None, Scalar.BLOB)
        for each in arguments
    )
    is_condition_wrong = call.name == "if" and scalar_of(arguments[0]) is not Scalar.BOOL
    if is_mixture and not is_condition_wrong:
        mixed = arguments[1:] if call.name == "if" else arguments
        _refuse_mixture(context, f"the arguments of {call.name}()", mixed, call.span)
        return
    got = ", ".join(_name_type(each) for each in arguments)
    shown = " or ".join(map(str, signatures))
    context.report_error("T112", call.span, f"{shown} cannot take ({got})")


def _refuse_mixture(
    context: CheckContext, what: str, values: Sequence[typed_tree.Expr], span: Span
) -> None:
    names = list(dict.fromkeys(map(_name_type, values)))[:_ARGUMENTS_SHOWN]
    context.report_error("T113", span, f"{what} have no common type: {', '.join(names)}")


def _name_type(value: typed_tree.Expr) -> str:
    if is_null(value):
        return "null"
    type_ = value.type
    return str(type_.value) if isinstance(type_, PropertyType) else str(type_)
