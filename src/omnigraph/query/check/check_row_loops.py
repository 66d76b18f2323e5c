"""Lists of records among the parameters, and statements that are done for each record."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, assert_never

from omnigraph.query import ast, typed_tree
from omnigraph.query.ast import WriteVerb
from omnigraph.query.check.check_assignments import (
    ENDS,
    check_assignments,
    check_complete,
    find_type,
    refuse_assigned_keys,
    require_key,
)
from omnigraph.query.check.check_context import CheckContext
from omnigraph.query.check.check_expressions import (
    Leaf,
    LeafExpr,
    check_expression,
    make_constant_leaf,
)
from omnigraph.query.check.check_own_fields import check_own_leaf
from omnigraph.query.tree_walk import variables_of
from omnigraph.schema.catalog import EdgeType, NodeType

ID_NAME: Final = "@id"


def declare_records(
    context: CheckContext, parameter: ast.Parameter, type_: ast.RecordListType
) -> None:
    """Make a list of records known to the context; None if its declaration is wrong."""
    fields = _list_fields(context, type_)
    name = parameter.name.text
    context.records[name] = (
        None if fields is None else typed_tree.RecordParameter(name, tuple(fields.values()))
    )


def _list_fields(
    context: CheckContext, type_: ast.RecordListType
) -> dict[str, typed_tree.Parameter] | None:
    if type_.type_name is not None:
        return _list_type_fields(context, type_)
    fields: dict[str, typed_tree.Parameter] = {}
    for each in type_.fields:
        name = each.name.text
        if name in fields:
            context.report_error("T106", each.name.span, f"field '{name}' is declared twice")
        fields[name] = typed_tree.Parameter(name, each.type)
    return fields


def _list_type_fields(
    context: CheckContext, type_: ast.RecordListType
) -> dict[str, typed_tree.Parameter] | None:
    """The properties of a type, of which only the key is required, and the ends of an edge."""
    assert type_.type_name is not None
    name, catalog = type_.type_name, context.catalog
    found = catalog.nodes.get(name.text) or catalog.edges.get(name.text)
    if found is None:
        hint = context.suggest_similar(name.text, (*catalog.nodes, *catalog.edges))
        context.report_error("T107", name.span, f"unknown type '{name.text}'", hint=hint)
        return None
    key = found.key or ()
    fields = {
        each.name: typed_tree.Parameter(each.name, each.type.as_nullable(each.name not in key))
        for each in found.properties.values()
    }
    if isinstance(found, EdgeType):
        ends = {end: typed_tree.Parameter(end, typed_tree.STRING) for end in ENDS}
        return ends | fields
    return fields


def check_row_loop(context: CheckContext, write: ast.RowsWrite) -> typed_tree.RowsWrite | None:
    """`for $row in $rows { … }`."""
    errors_before = context.errors
    source, variable = write.source.name, write.variable
    if source not in context.records:
        is_other = source in context.parameters
        got = "a parameter of another type" if is_other else "not a parameter"
        context.report_error(
            "T120",
            write.source.span,
            f"'for' needs a parameter with records; '${source}' is {got}",
            hint=f"declare it as ${source}: [{{ name: Type }}], or as [Type] of the schema",
        )
    if variable.name in context.parameters or variable.name in context.records:
        context.report_error(
            "T106", variable.span, f"'${variable.name}' is the name of a parameter"
        )
    record = context.records.get(source)
    if record is None or context.errors > errors_before:
        return None
    leaf = _make_record_leaf(context, variable.name, record)
    actions = [_check_statement(context, each, leaf, variable.name) for each in write.statements]
    _require_separate(context, write, actions)
    known = tuple(each for each in actions if each is not None)
    return typed_tree.RowsWrite(variable.name, source, known)


def _require_separate(
    context: CheckContext,
    write: ast.RowsWrite,
    actions: Sequence[typed_tree.RecordAction | None],
) -> None:
    """Refuse statements that would do something else one after the other than record by record."""
    targets = [each and _describe_target(context, each) for each in actions]
    for place, later in enumerate(targets):
        conflicting = (
            each for each in targets[:place] if each and later and each.may_conflict(later)
        )
        if later and next(conflicting, None) is not None:
            context.report_error(
                "T122",
                write.statements[place].type_name.span,
                f"another statement of this 'for' may write the same {later.type_name}",
                hint="name it by the same key in both, or write a 'for' of its own",
            )


@dataclass(frozen=True, slots=True)
class _Target:
    """The entity that a statement of a loop is about: who it is, and what is assigned to it.

    A statement other than a patch decides about the whole entity, or reads it.
    """

    type_name: str
    identity: frozenset[tuple[str, typed_tree.Expr]]
    assigned: frozenset[str]
    is_patch: bool

    def may_conflict(self, later: _Target) -> bool:
        """Whether the order of the two may matter for different records."""
        if self.type_name != later.type_name or self.identity == later.identity:
            return False
        return not (self.is_patch and later.is_patch) or bool(self.assigned & later.assigned)


def _describe_target(context: CheckContext, action: typed_tree.RecordAction) -> _Target | None:
    """What an action is about; None if it makes an entity that no other statement can name."""
    catalog = context.catalog
    if isinstance(action, typed_tree.DeleteEach):
        return _Target(action.type_name, _identify(action.identity), frozenset(), is_patch=False)
    reads = any(typed_tree.ROW in variables_of(each.value) for each in action.assignments)
    if isinstance(action, typed_tree.UpdateEach):
        assigned = frozenset(each.property for each in action.assignments)
        return _Target(action.type_name, _identify(action.identity), assigned, is_patch=not reads)
    type_ = catalog.nodes.get(action.type_name) or catalog.edges[action.type_name]
    if not type_.key:
        return None
    ends = zip(("@src", "@dst"), action.ends or (), strict=False)
    key = [each for each in action.assignments if each.property in type_.key]
    return _Target(
        action.type_name,
        _identify(key) | frozenset(ends),
        frozenset(each.property for each in action.assignments) - set(type_.key),
        is_patch=action.verb is WriteVerb.UPSERT and not reads,
    )


def _identify(members: Iterable[typed_tree.Assign]) -> frozenset[tuple[str, typed_tree.Expr]]:
    return frozenset((each.property, each.value) for each in members)


def _make_record_leaf(
    context: CheckContext, variable: str, record: typed_tree.RecordParameter
) -> Leaf:
    """The leaves of a value that reads a record."""
    fields = {each.name: each.type for each in record.fields}
    refuse = make_constant_leaf(context)

    def leaf(expr: LeafExpr) -> typed_tree.Expr | None:
        match expr:
            case ast.PropertyAccess(ast.Variable(owner), name) if owner == variable:
                type_ = fields.get(name.text)
                if type_ is not None:
                    return typed_tree.PropertyValue(variable, name.text, type_)
                hint = context.suggest_similar(name.text, fields)
                context.report_error(
                    "T128",
                    name.span,
                    f"the records of '${record.name}' have no field '{name.text}'",
                    hint=hint or f"the fields are {', '.join(fields)}",
                )
                return None
            case ast.Variable(owner, span) if owner == variable:
                hint = f"name a field of it, such as ${variable}.{next(iter(fields))}"
                context.report_error("T128", span, f"'${variable}' is a record", hint=hint)
                return None
            case _:
                return refuse(expr)

    return leaf


def _join_own_leaf(
    context: CheckContext, record_leaf: Leaf, variable: str, type_: NodeType | EdgeType
) -> Leaf:
    """The leaves of a value that also reads the entity as it is before the statement."""

    def leaf(expr: LeafExpr) -> typed_tree.Expr | None:
        match expr:
            case ast.PropertyAccess(ast.Variable(owner)) | ast.Variable(owner) if owner == variable:
                return record_leaf(expr)
            case _:
                return check_own_leaf(context, type_, expr, "a value")

    return leaf


def _refuse_own_keys(
    context: CheckContext, insert: ast.Insert, values: Iterable[typed_tree.Assign], key: set[str]
) -> None:
    """Report what identifies an entity and reads it: it is not found yet."""
    spans = {each.property.text: each.value.span for each in insert.assignments}
    for each in values:
        if each.property in key and typed_tree.ROW in variables_of(each.value):
            message = f"'{each.property}' identifies the entity, and cannot be read of it"
            context.report_error("T45", spans[each.property], message)


def _check_statement(
    context: CheckContext, statement: ast.Mutation, leaf: Leaf, variable: str
) -> typed_tree.RecordAction | None:
    target = find_type(context, statement.type_name)
    if target is None:
        return None
    own_leaf = _join_own_leaf(context, leaf, variable, target)
    match statement:
        case ast.Insert(verb=verb):
            used = own_leaf if verb is WriteVerb.UPSERT else leaf
            return _check_verb(context, statement, used, target)
        case ast.Update(assignments=given):
            identity = _check_identity(context, statement.condition, own_leaf, target)
            refuse_assigned_keys(context, given, target)
            errors_before = context.errors
            values = check_assignments(context, given, target, leaf=own_leaf)
            if identity is None or context.errors > errors_before:
                return None
            is_edge = isinstance(target, EdgeType)
            return typed_tree.UpdateEach(target.name, is_edge, identity, values)
        case ast.Delete(condition=condition):
            identity = _check_identity(context, condition, own_leaf, target)
            if identity is None:
                return None
            is_edge = isinstance(target, EdgeType)
            return typed_tree.DeleteEach(target.name, is_edge, identity)
        case _:
            assert_never(statement)


def _check_identity(
    context: CheckContext, condition: ast.Expr, leaf: Leaf, type_: NodeType | EdgeType
) -> tuple[typed_tree.Assign, ...] | None:
    """What a condition says that all members of a key are, or the id."""
    value = check_expression(context, condition, leaf)
    if value is None:
        return None
    tests = value.operands if isinstance(value, typed_tree.AllOf) else (value,)
    found = [_find_member(each) for each in tests]
    identity = tuple(each for each in found if each is not None)
    names = [each.property for each in identity]
    key = list(type_.key or ())
    if len(identity) == len(found) and sorted(names) in (sorted(key), [ID_NAME]):
        return identity
    wanted = " and ".join(f"{name} = …" for name in (key or [ID_NAME]))
    message = f"in a 'for', 'where' names one entity of {type_.name} by its key"
    context.report_error("T122", condition.span, message, hint=f"write {wanted}")
    return None


def _find_member(test: typed_tree.Expr) -> typed_tree.Assign | None:
    """`member = value` or `value = member`, where the value does not read the entity."""
    if not isinstance(test, typed_tree.Compare) or test.op is not ast.CompareOp.EQ:
        return None
    for own, other in ((test.left, test.right), (test.right, test.left)):
        if typed_tree.ROW in variables_of(other):
            continue
        match own:
            case typed_tree.PropertyValue(typed_tree.ROW, name):
                return typed_tree.Assign(name, other)
            case typed_tree.SystemValue(typed_tree.ROW, name):
                return typed_tree.Assign(f"@{name}", other)
    return None


def _check_verb(
    context: CheckContext, insert: ast.Insert, leaf: Leaf, target: NodeType | EdgeType
) -> typed_tree.WriteEach | None:
    require_key(context, insert, target)
    ends = ENDS if isinstance(target, EdgeType) else {}
    errors_before = context.errors
    values = check_assignments(
        context, insert.assignments, target, ends=ends, leaf=leaf, may_compute_key=True
    )
    _refuse_own_keys(context, insert, values, {*ends, *(target.key or ())})
    check_complete(context, insert, target, needed=tuple(ends))
    if context.errors > errors_before:
        return None
    given = {each.property: each.value for each in values}
    properties = tuple(each for each in values if each.property not in ends)
    both = (given["from"], given["to"]) if ends else None
    return typed_tree.WriteEach(target.name, both, properties, insert.verb)
