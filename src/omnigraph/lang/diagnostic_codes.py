"""The register of every diagnostic code: what it means, in one line.

Families: S schema text and catalog, OG schema migration, T query types, Q query text, P planning,
L lint. T1 to T54 keep their published meanings; codes from T100 on are ours.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Code:
    """A code and what it means."""

    code: str
    title: str


_SCHEMA = """
S001 the text does not match the schema grammar
S002 a type is not allowed: vector dimension, list element, or enum values
S003 a type is declared twice
S004 two edge types differ only in case
S005 an edge end is not a declared node type
S006 a property is declared twice
S007 a property name is reserved
S008 an implemented interface is not declared
S009 a property does not equal the interface property it satisfies
S010 two interfaces give one property incompatible semantics
S011 a type has more than one key
S012 a property cannot be part of a key
S013 a constraint names an unknown property
S014 a constraint does not fit the property's type
S015 an annotation or constraint is not allowed here
S016 an annotation or constraint argument is missing or wrong
S017 an annotation is repeated
S018 a cardinality is not possible
S019 `@embed` is misused
S020 a pattern is not a regular expression
S021 an edge key must list both ends
S022 a bare `src` or `dst` stands for an edge end
S023 the interfaces of a schema give its nodes too many properties
S024 a merge rule does not fit its property
S030 a rename hint names nothing in the accepted schema
S031 a rename hint names another kind of declaration
S032 two declarations claim one accepted type or property
S033 a rename hint would move a property to another type
S034 a new type cannot take over the identity of a property
S035 inert_initialization_rename_hint: a rename hint has no effect on a new graph
S036 ignored_exact_match_rename_hint: a rename hint is ignored because the name already exists
S037 a rename hint names what is in force beside the new name, and would be dropped
"""

_MIGRATION = """
OG-DS-101 a populated graph type would be dropped (reserved)
OG-DS-102 a populated node type would be dropped (reserved: planned as a soft drop)
OG-DS-103 a populated edge type would be dropped (reserved: planned as a soft drop)
OG-DS-104 a property of a populated type would be dropped (reserved: planned as a soft drop)
OG-DS-105 a populated vector property would be dropped (reserved)
OG-DS-106 a schema without types would drop every type of the graph
OG-MF-103 a required property needs values for existing entities
OG-MF-104 a property would become required, and entities may lack a value
OG-MF-106 the type of a property would change
OG-MF-107 a constraint would be added or narrowed, and entities may contradict it
OG-MF-108 the type of a property would change, and entities may have other values
OG-MF-109 a property would get its default for entities that may have none
"""

_TYPES = """
T1 a binding names an unknown node type
T2 a binding matches an unknown property
T3 a literal does not fit the property
T4 the edge type is unknown
T5 a variable's type does not fit the edge
T6 a property access names an unbound variable or an unknown property or field
T7 operands are not comparable
T8 an aggregate cannot take this argument
T9 an item does not belong beside an aggregate, or `not { }` mentions no outer variable
T10 a mutation names an unknown type or assigns nothing
T11 a mutation names an unknown property
T12 an insert misses something required
T13 a property is assigned twice
T14 a value variable is not a declared parameter
T15 hop bounds or `nearest` arguments are not possible
T16 edges cannot be updated in strict mode
T17 `nearest` ordering needs a limit
T18 `nearest` ordering cannot be combined with an alias
T19 `search` or `fuzzy` arguments have the wrong type
T20 `match_text` or `bm25` arguments have the wrong type
T21 `rrf` arguments are wrong, or its limit is missing
T22 an undirected traversal needs equal endpoint types
T23 an edge binding is misused
T24 a Blob cannot be read by a query
T25 a result column is produced by more than one projection
T32 a rank call stands inside an aggregate
T33 a returned score must repeat the leading order key
T35 a search predicate cannot be returned
T36 an alias cannot be returned again
T38 a search predicate must be a whole condition
T39 a block mentions no outer variable
T40 a block can only be compared with a fitting constant
T41 a Boolean is needed
T42 an order key is neither a property nor returned
T43 a computed result needs an alias
T44 an aggregate, search or rank call cannot be used in a mutation
T45 a constant is needed
T46 `true` or `false` is also a property of this type
T54 text ranks cannot be ascending
T100 a name is reserved
T101 a variable is bound twice with different types
T102 a variable is not bound
T103 list items have no common type
T104 a traversal touches no declared variable
T105 a wildcard needs both ends declared
T106 a parameter or query name is declared twice, or clashes with a variable
T107 a parameter's type is not allowed
T110 an operator cannot take these operands
T111 a function is unknown, or does not take so many arguments
T112 a function cannot take an argument of this type
T113 values have no common type
T114 a pattern cannot be matched, or is not constant
T116 a variable was not carried by `with`
T117 a value stands where a node or an edge is needed
T118 a path cannot be found or used so
T119 the columns of combined reads differ
T120 `for` goes through a list, and this is not one
T121 a limit, an offset or a cursor is wrong, or stands where it has no meaning
T122 a loop does not name an entity by its key or its id, or names one in two ways
T123 a verb needs a type with a key
T124 what is updated or deleted is not an entity
T125 a condition of `having` reads what the result does not have
T126 an option or a column of a table function is wrong
T127 a default is not made of values, the time and other properties, or cannot be there
T128 a record has no such field, or stands where a value is needed
T129 an option of `nearest` has no such value
"""

_QUERIES = """
Q000 the query file cannot be linted
Q001 the text does not match the query grammar
Q002 a query has no parameter list
Q003 a settings line is wrong
Q004 a statement is misplaced or malformed
Q005 the body of a query is not allowed
Q006 the text goes beyond the reference language, which strict mode refuses
P001 the ranked variable cannot be ranked where it stands
P005 the arms of `rrf` rank different variables
"""

_LINT = """
L201 an updatable property is set by no update query
L202 a mutation declares no parameters
L203 a mutation mixes writes and deletes, which strict mode refuses
L204 an enum is compared with a literal that is not one of its values
L310 an edge named by a reserved word should be quoted
L311 a reserved word is used as a name
L312 hop bounds on an edge between two types act as one hop
L313 a direction on a text rank is ignored
L314 a traversal scans its source type because neither end is declared
L315 a parameter has the name of a variable
L316 digits beyond milliseconds are cut off
L317 a bare `contains` between variables is read as a filter
L318 an alias orders rows after `nearest`
L320 an insert may replace an entity whole
L321 `each` has no tail, so it is the same as its clauses
L322 a value that has a name is not used
L323 a clause after an optional block drops the rows that the block keeps
L324 a path or hops have no maximum, and nothing narrows down either end
L325 a computed float is compared for equality
L326 quotes in a search mean nothing; `phrase` looks for words in sequence
"""


def _register(*families: str) -> dict[str, Code]:
    lines = [line.split(" ", 1) for family in families for line in family.strip().splitlines()]
    return {code: Code(code, title) for code, title in lines}


CODES = _register(_SCHEMA, _MIGRATION, _TYPES, _QUERIES, _LINT)
