"""The authors and books that the tests of the model are about, and short ways to ask for them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import count
from typing import Any

from model import Affected, ModelGraph, to_json
from omnigraph.query.logical_plan import ReadPlan
from omnigraph.query.query_compiler import compile_query
from omnigraph.query.query_lowering import lower_query
from omnigraph.query.query_parameters import bind_parameters
from omnigraph.query.typed_tree import Mutation, Parameter
from omnigraph.schema import load_catalog

NOW = 1_700_000_000_000

SCHEMA = """
interface Named { name: String @index }

node Author implements Named {
  handle: String @key
  bornOn: Date?
  score:  F64?
  email:  String? @unique
  @range(score, 0..100)
  @check(handle, "^[a-z0-9-]{3,30}$")
}

node Book {
  isbn: String @key
  title: String @index
  blurb: String?
  state: enum(draft, out, pulp)
  tags: [String]?
  cover: Blob?
  vec: Vector(2)? @embed(blurb, model="demo/mini")
}

edge Wrote: Author -> Book @card(0..) {
  role: enum(lead, helper)?
  since: DateTime?
  @unique(@src, @dst)
}
edge Follows: Author -> Author
edge Mentors: Author -> Author { since: DateTime?  @key(@src, @dst) }
edge In: Author -> Book
"""

SEED = """
{"type":"Author","data":{"handle":"ann","name":"Ann","score":90,"bornOn":"1980-01-02","email":"a@x"}}
{"type":"Author","data":{"handle":"bob","name":"Bob","score":40}}
{"type":"Author","data":{"handle":"cyd","name":"Cyd"}}
{"type":"Author","data":{"handle":"dov","name":"Dov","score":40}}
{"type":"Book","data":{"isbn":"b1","title":"The Sea Wars","state":"out","tags":["sea","war"]}}
{"type":"Book","data":{"isbn":"b2","title":"A quiet sea","state":"draft","tags":[]}}
{"type":"Book","data":{"isbn":"b3","title":"Running cats","state":"out"}}
{"edge":"Wrote","id":"w1","from":"ann","to":"b1","data":{"role":"lead","since":"2020-01-01T00:00:00Z"}}
{"edge":"Wrote","id":"w2","from":"ann","to":"b2","data":{"role":"helper"}}
{"edge":"Wrote","id":"w3","from":"bob","to":"b2"}
{"edge":"Follows","id":"f1","from":"ann","to":"bob"}
{"edge":"Follows","id":"f2","from":"bob","to":"cyd"}
{"edge":"Follows","id":"f3","from":"cyd","to":"ann"}
{"edge":"Follows","id":"f4","from":"dov","to":"dov"}
{"edge":"Mentors","from":"ann","to":"bob"}
{"edge":"Mentors","from":"ann","to":"cyd"}
{"edge":"In","id":"i1","from":"cyd","to":"b3"}
"""


def graph_of(schema: str, seed: str = "") -> ModelGraph:
    """A graph of a schema text, with ids that count up."""
    numbers = count(1)
    graph = ModelGraph(load_catalog(schema), new_id=lambda: f"new{next(numbers)}")
    graph.load(seed, mode="append", dialect="strict")
    return graph


def library() -> ModelGraph:
    """The authors and books."""
    return graph_of(SCHEMA, SEED)


def ask(
    graph: ModelGraph, text: str, params: Mapping[str, Any] | None = None, **options: Any
) -> list[dict[str, Any]]:
    """The rows of a query as JSON; its plan must mean the same before and after rewriting."""
    compiled = compile_query(text, graph.catalog)
    plans = [lower_query(compiled.checked), compiled.plan]
    answers = []
    for plan in plans:
        assert isinstance(plan, ReadPlan)
        rows = graph.read(plan, _bound(plan.parameters, params), now=NOW, **options)
        shown = [
            {
                column.name: to_json(row[column.name], column.type, graph.catalog)
                for column in plan.columns
            }
            for row in rows
        ]
        answers.append(shown if plan.is_ordered else sorted(shown, key=json.dumps))
    assert answers[0] == answers[1]
    return answers[0]


def column(
    graph: ModelGraph, text: str, params: Mapping[str, Any] | None = None, **options: Any
) -> list[Any]:
    """The values of the only column of a query."""
    return [next(iter(row.values())) for row in ask(graph, text, params, **options)]


def handles(graph: ModelGraph, clauses: str, params: str = "", **supplied: Any) -> list[str]:
    """The handles of the authors `$a` that match, in alphabetical order, each as often as found."""
    text = f"query q({params}) {{ match {{ $a: Author {clauses} }} return {{ $a.handle }} }}"
    found: list[str] = column(graph, text, supplied)
    return found


def change(graph: ModelGraph, text: str, params: Mapping[str, Any] | None = None) -> Affected:
    """Run a mutation: a whole declaration, or just its statements."""
    if not text.startswith("query"):
        text = f"query q() {{ {text} }}"
    plan = compile_query(text, graph.catalog).plan
    assert isinstance(plan, Mutation)
    return graph.mutate(plan, _bound(plan.parameters, params), now=NOW)


def _bound(parameters: tuple[Parameter, ...], params: Mapping[str, Any] | None) -> dict[str, Any]:
    return {**bind_parameters(parameters, dict(params or {}))}
