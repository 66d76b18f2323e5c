"""Variables, and which of them can be seen where."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from omnigraph.query import ast, typed_reads, typed_tree
from omnigraph.query.check.check_context import CheckContext
from omnigraph.query.check.check_type_sets import find_set_property
from omnigraph.schema.ast import Name
from omnigraph.schema.catalog import EdgeType, Property
from omnigraph.schema.property_types import PropertyType
from omnigraph.schema.type_sets import is_type_set, merge_types

ANONYMOUS = "_"
_RESERVED_PREFIX = "__"
# The type of a node is for reads beyond the reference language.
NODE_FIELDS = (typed_tree.SystemName.ID,)
_NODE_FIELDS_READ = (typed_tree.SystemName.ID, typed_tree.SystemName.TYPE)
EDGE_FIELDS = tuple(typed_tree.SystemName)


@dataclass(frozen=True, slots=True)
class NodeVariable:
    """A node variable; it has no type when the clause that gives it one is wrong."""

    name: str
    type_name: str | None
    # Bound by an optional block: a row may lack it.
    is_nullable: bool = False


@dataclass(frozen=True, slots=True)
class EdgeVariable:
    """An edge variable and the types its edges may have, or None when its clause is wrong."""

    name: str
    edge_types: tuple[str, ...] | None
    is_nullable: bool = False


@dataclass(frozen=True, slots=True)
class ValueVariable:
    """A variable for a value; its clause is wrong if there is none.

    What `let` names is an expression over other variables, which takes the place of the name.
    """

    name: str
    value: typed_tree.Expr | None
    is_nullable: bool = False

    @property
    def is_bound(self) -> bool:
        """Whether rows have it, as they do what `for` gives."""
        value = self.value
        return isinstance(value, typed_tree.BoundValue) and value.variable == self.name


Entity = NodeVariable | EdgeVariable
Bound = Entity | ValueVariable


class Scope:
    """The variables of one block, in order of appearance, inside those of the blocks around it.

    `declared` are the node types of the bindings of the whole block, known before its clauses are
    read; None where the type is unknown. A variable of an outer block can be seen only if a clause
    before this block has bound it. `exported` are the variables of lateral blocks that have ended,
    each with whether a binding gave it its type. `dropped` are the variables that a stage before
    did not carry.
    """

    def __init__(
        self,
        declared: Mapping[str, str | None],
        outer: Scope | None = None,
        dropped: frozenset[str] = frozenset(),
    ) -> None:
        self.declared = declared
        self.exported: dict[str, bool] = {}
        self.outer = outer
        self.dropped = dropped
        self.mentioned: set[str] = set()
        self.own: dict[str, Bound] = {}
        # Those that something refers to.
        self.used: set[str] = set()
        # The blocks and scores in expressions of this block, which no clause binds yet.
        self._hidden: list[typed_reads.BlockColumn | typed_reads.Let] = []

    def bind_hidden(self, value: typed_reads.BlockColumn | typed_reads.Let) -> None:
        """Let a clause bind the value of a block, or a score, that stands in an expression."""
        self._hidden.append(value)

    def take_hidden(self) -> tuple[typed_reads.BlockColumn | typed_reads.Let, ...]:
        """The values in expressions that are to be bound now."""
        found = tuple(self._hidden)
        self._hidden.clear()
        return found

    def attach_hidden(self, pattern: typed_reads.Pattern) -> typed_reads.Pattern:
        """The pattern, which binds what stands in expressions after it too."""
        hidden = self.take_hidden()
        return pattern if not hidden else replace(pattern, clauses=(*pattern.clauses, *hidden))

    def find(self, name: str) -> Bound | None:
        """The variable of a name, if a clause has bound it; remembers a look at outer blocks."""
        owner = self._find_owner(name)
        if owner is None:
            return None
        owner.used.add(name)
        if owner is not self:
            self.mentioned.add(name)
        return owner.own[name]

    @property
    def mentions_outer(self) -> bool:
        """Whether a clause of this block, or of a lateral one in it, uses an outer variable."""
        return bool(self.mentioned)

    def peek(self, name: str) -> Bound | None:
        """The variable of a name, without counting as a mention."""
        owner = self._find_owner(name)
        return None if owner is None else owner.own[name]

    def _find_owner(self, name: str) -> Scope | None:
        scope: Scope | None = self
        while scope is not None and name not in scope.own:
            scope = scope.outer
        return scope

    def is_dropped(self, name: str) -> bool:
        """Whether a stage before bound the name, and did not carry it."""
        return name in self.list_dropped()

    def list_dropped(self) -> frozenset[str]:
        """The variables that stages before bound, and did not carry."""
        return self.dropped | (frozenset() if self.outer is None else self.outer.list_dropped())

    def bind(self, variable: Bound) -> None:
        """Add a variable to this block."""
        self.own[variable.name] = variable

    def is_declared(self, name: str) -> bool:
        """Whether a binding gives the name its type, in this block or in one around it."""
        scope: Scope | None = self
        while scope is not None:
            # A binding of an outer block counts only once its variable can be seen.
            if name in scope.declared and (scope is self or name in scope.own):
                return True
            if name in scope.own:
                return scope.exported.get(name, False)
            scope = scope.outer
        return False

    def add_exports(self, inner: Scope, *, is_optional: bool) -> None:
        """Let the variables of a lateral block, whose clauses are clauses here, be seen here."""
        for name in inner.mentioned:
            self.find(name)
        for name, variable in inner.own.items():
            self.exported[name] = inner.is_declared(name)
            self.own[name] = _as_nullable(variable) if is_optional else variable

    def list_named_values(self) -> tuple[tuple[str, typed_tree.Expr], ...]:
        """The variables that stand for an expression over others."""
        return tuple(
            (variable.name, variable.value)
            for variable in self.own.values()
            if isinstance(variable, ValueVariable)
            and variable.value is not None
            and not (variable.is_bound or isinstance(variable.value, typed_tree.PathValue))
        )

    def list_nodes(self) -> tuple[tuple[str, str], ...]:
        """The node variables of this block with their types."""
        return tuple(
            (variable.name, variable.type_name)
            for variable in self._iter_introduced()
            if isinstance(variable, NodeVariable) and variable.type_name is not None
        )

    def list_edges(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """The edge variables of this block with the types they may have."""
        return tuple(
            (variable.name, variable.edge_types)
            for variable in self._iter_introduced()
            if isinstance(variable, EdgeVariable) and variable.edge_types is not None
        )

    def _iter_introduced(self) -> Iterator[Bound]:
        return (each for each in self.own.values() if each.name not in self.exported)

    def list_value_names(self) -> list[str]:
        """The names of values that can be seen from here."""
        return [name for name in self.iter_names() if isinstance(self.peek(name), ValueVariable)]

    def iter_names(self) -> Iterator[str]:
        """Every name that can be seen from here and that a text can spell."""
        scope: Scope | None = self
        while scope is not None:
            yield from (
                name for name in scope.own if not name.startswith(typed_tree.ANONYMOUS_PREFIX)
            )
            scope = scope.outer


def _as_nullable(variable: Bound) -> Bound:
    """A variable of an optional block: it is null where the block has no match."""
    if not isinstance(variable, ValueVariable) or variable.value is None:
        return replace(variable, is_nullable=True)
    if isinstance(variable.value, typed_tree.PathValue):
        path = replace(variable.value, type=replace(variable.value.type, is_nullable=True))
        return ValueVariable(variable.name, path, is_nullable=True)
    type_ = variable.value.type
    assert isinstance(type_, PropertyType)
    bound = typed_tree.BoundValue(variable.name, type_.as_nullable())
    return ValueVariable(variable.name, bound, is_nullable=True)


def check_new_name(context: CheckContext, variable: ast.Variable) -> None:
    """Report a variable name that is reserved, or that a parameter has too."""
    check_reserved(context, variable)
    name = variable.name
    if name in context.parameters and context.is_first("clash", name):
        context.report_deprecated(
            ("T106", "L315"),
            variable.span,
            f"'${name}' is a parameter and a variable; expressions mean the parameter",
            hint="rename one of them",
        )


def check_reserved(context: CheckContext, variable: ast.Variable) -> None:
    """Report a variable name that is reserved."""
    name = variable.name
    if name.startswith(_RESERVED_PREFIX) and context.is_first("reserved", name):
        context.report_error(
            "T100",
            variable.span,
            f"variable '${name}' is reserved: names starting with '__' belong to the system",
        )


@dataclass(frozen=True, slots=True)
class Owner:
    """What a property belongs to, for messages: a type's name, its properties, its `@` fields."""

    name: str
    properties: Mapping[str, Property]
    fields: tuple[typed_tree.SystemName, ...]


def check_variable(
    context: CheckContext, scope: Scope, variable: ast.Variable
) -> typed_tree.Expr | None:
    """A bare variable that is not a parameter: a node, or a value."""
    bound = find_bound(context, scope, variable, "T102")
    match bound:
        case NodeVariable(name, str(type_name), is_nullable):
            return typed_tree.NodeValue(name, typed_tree.NodeObject(type_name, is_nullable))
        case EdgeVariable():
            refuse_edge(context, variable, "stand alone; name one of its properties")
        case ValueVariable(value=value):
            return value
    return None


def read_edge(scope: Scope, name: str) -> typed_tree.EdgeValue | None:
    """An edge as an object, if a name stands for one whose types are known."""
    match scope.find(name):
        case EdgeVariable(_, (_, *_) as types, is_nullable):
            kind = typed_tree.EdgeObject("Edge", is_nullable, edge_types=tuple(types))
            if len(types) == 1:
                kind = replace(kind, type_name=types[0])
            return typed_tree.EdgeValue(name, kind)
        case _:
            return None


def check_property(
    context: CheckContext, scope: Scope, access: ast.PropertyAccess, *, code: str = "T6"
) -> typed_tree.PropertyValue | None:
    """A property of a bound node or edge."""
    bound = find_entity(context, scope, access.variable, code)
    match bound:
        case NodeVariable(name, str(type_name)):
            node = context.catalog.nodes[type_name]
            found = node.properties.get(access.property.text)
            if is_type_set(type_name):
                found = find_set_property(context, type_name, access, code)
            elif found is None:
                owner = Owner(type_name, node.properties, NODE_FIELDS)
                refuse_property(context, code, access.property, owner)
            if found is None:
                return None
            return typed_tree.PropertyValue(name, found.name, _value_type_of(bound, found.type))
        case EdgeVariable(name, tuple(edge_types)):
            type_ = _check_edge_property(context, edge_types, access.property, code)
            if type_ is not None:
                return typed_tree.PropertyValue(
                    name, access.property.text, _value_type_of(bound, type_)
                )
    return None


def _value_type_of(bound: NodeVariable | EdgeVariable, type_: PropertyType) -> PropertyType:
    """The type of a value of a variable, which is null where the variable is."""
    return type_.as_nullable() if bound.is_nullable else type_


def check_node_property(
    context: CheckContext, scope: Scope, access: ast.PropertyAccess, *, code: str = "T6"
) -> typed_tree.PropertyValue | None:
    """A property that a search or rank call reads: only nodes can be searched."""
    bound = scope.find(access.variable.name)
    if isinstance(bound, EdgeVariable):
        refuse_edge(context, access.variable, "be searched")
        return None
    if isinstance(bound, NodeVariable) and is_type_set(bound.type_name or ""):
        message = f"a search reads one node type, and '${bound.name}' is of {bound.type_name}"
        context.report_error(code, access.property.span, message, hint="bind one type")
        return None
    return check_property(context, scope, access, code=code)


def check_system(
    context: CheckContext, scope: Scope, access: ast.SystemAccess
) -> typed_tree.SystemValue | typed_tree.Constant | None:
    """A system field of a bound node or edge; the only type that a node can have is a constant."""
    bound = find_entity(context, scope, access.variable, "T6")
    if bound is None:
        return None
    fields = EDGE_FIELDS
    if isinstance(bound, NodeVariable):
        fields = NODE_FIELDS if context.is_strict else _NODE_FIELDS_READ
    field = access.name.text
    if field not in {str(each) for each in fields}:
        kind = "a node" if isinstance(bound, NodeVariable) else "an edge"
        context.report_error(
            "T6",
            access.name.span,
            f"{kind} has no field '@{field}'; it has {_format_fields(fields)}",
        )
        return None
    return read_field(bound, typed_tree.SystemName(field))


def read_field(
    bound: NodeVariable | EdgeVariable, field: typed_tree.SystemName
) -> typed_tree.SystemValue | typed_tree.Constant | None:
    """A system field that an entity has."""
    if isinstance(bound, NodeVariable) and field is typed_tree.SystemName.TYPE:
        if bound.type_name is None:
            return None
        if not bound.is_nullable and not is_type_set(bound.type_name):
            return typed_tree.Constant(bound.type_name, typed_tree.STRING)
    return typed_tree.SystemValue(bound.name, field, _value_type_of(bound, typed_tree.STRING))


def find_entity(
    context: CheckContext, scope: Scope, variable: ast.Variable, code: str
) -> NodeVariable | EdgeVariable | None:
    """The node or the edge that a name stands for."""
    bound = find_bound(context, scope, variable, code)
    if isinstance(bound, ValueVariable):
        refuse_value(context, variable, "it has no properties")
        return None
    return bound


def refuse_value(context: CheckContext, variable: ast.Variable, why: str) -> None:
    """Report a variable for a value where only a node or an edge can stand."""
    context.report_error("T117", variable.span, f"'${variable.name}' is a value: {why}")


def find_bound(
    context: CheckContext, scope: Scope, variable: ast.Variable, code: str
) -> Bound | None:
    """The variable a name stands for; an unbound name is reported once."""
    name = variable.name
    bound = scope.find(name)
    if bound is None and context.is_first("unbound", name):
        is_dropped = scope.is_dropped(name)
        context.report_error(
            "T116" if is_dropped else code,
            variable.span,
            _format_unbound(context, scope, name),
            hint=f"carry it: with {{ …, ${name} }}"
            if is_dropped
            else context.suggest_similar(name, scope.iter_names()),
        )
    return bound


def refuse_edge(context: CheckContext, variable: ast.Variable, what: str) -> None:
    """Report an edge variable where only a node or a value can stand."""
    context.report_error("T23", variable.span, f"edge variable '${variable.name}' cannot {what}")


def refuse_property(
    context: CheckContext, code: str, name: Name, owner: Owner, *, hint: str | None = None
) -> None:
    """Report an unknown property, naming the `@` field or the nearest property instead."""
    if hint is None and name.text in {str(field) for field in owner.fields}:
        hint = f"the system field is '@{name.text}'"
    hint = hint or context.suggest_similar(name.text, owner.properties)
    context.report_error(code, name.span, f"{owner.name} has no property '{name.text}'", hint=hint)


def _format_unbound(context: CheckContext, scope: Scope, name: str) -> str:
    if name == ANONYMOUS:
        return "'$_' binds nothing, so it cannot be read"
    if name in context.parameters:
        return f"'${name}' is a parameter; it has no properties or fields"
    if scope.is_dropped(name):
        return f"'${name}' is not carried by 'with'"
    if name in scope.declared:
        return f"variable '${name}' is used before the clause that binds it"
    if name in context.block_variables:
        return f"variable '${name}' is bound inside a block and cannot be seen here"
    return f"variable '${name}' is not bound"


def _check_edge_property(
    context: CheckContext, edge_types: tuple[str, ...], name: Name, code: str
) -> PropertyType | None:
    edges = [context.catalog.edges[each] for each in edge_types]
    if not edges:
        context.report_error(
            code, name.span, f"no edge type fits here, so there is no '{name.text}'"
        )
        return None
    for edge in edges:
        if name.text not in edge.properties:
            owner = Owner(edge.name, edge.properties, EDGE_FIELDS)
            is_shared = len(edges) > 1 and any(name.text in each.properties for each in edges)
            hint = f"each of {_format_edge_names(edges)} must have it" if is_shared else None
            refuse_property(context, code, name, owner, hint=hint)
            return None
    merged = merge_types(edge.properties[name.text].type for edge in edges)
    if merged is None:
        context.report_error(
            code,
            name.span,
            f"property '{name.text}' has different types on {_format_edge_names(edges)}",
            hint="select fewer edge types",
        )
    return merged


def _format_fields(fields: Iterable[typed_tree.SystemName]) -> str:
    return ", ".join(f"'@{field}'" for field in fields)


def _format_edge_names(edges: Iterable[EdgeType]) -> str:
    return ", ".join(edge.name for edge in edges)
