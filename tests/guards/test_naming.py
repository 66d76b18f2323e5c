"""Names: a function is a verb phrase, and a file can be found by its name alone."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

SOURCES = sorted((Path(__file__).parents[2] / "src" / "omnigraph").rglob("*.py"))
# What the name of a function may begin with. A verb that is missing is added to that file.
VERBS = frozenset((Path(__file__).parent / "verbs.txt").read_text().split())
# Statements about the subject, conversions, and copies with a change.
STATEMENTS = (
    *("is", "has", "are", "can", "may", "must", "should", "was", "were", "does", "did", "have"),
    *("accepts", "allows", "begins", "contains", "covers", "fits", "holds", "keeps", "matches"),
    *("needs", "supports", "uses", "wants", "from", "to", "as", "with", "without", "iter", "on"),
)
# What users hold has nouns, as the five nouns of the API do.
NOUNS = {
    "Baseline",
    "Branch",
    "BranchReads",
    "Cluster",
    "Diff",
    "Graph",
    "GraphProposals",
    "GraphSpark",
    "RemoteBaseline",
    "RemoteBranch",
    "RemoteGraph",
    "RemoteProposal",
    "RemoteSnapshot",
    "Result",
    "Snapshot",
}
# Methods that a library or the language asks for.
DEMANDED = {"main", "partitions", "pushFilters", "readable", "reader", "readinto", "scanner"} | {
    *("schema", "seekable", "tell", "cherry_pick", "options", "process_value", "version"),
    # Of a data source of Spark.
    *("streamReader", "streamWriter", "writer", "initialOffset", "latestOffset", "abort"),
    *("default_schema", "nullable_schema", "model_schema", "field_title_should_be_set"),
    *("connection_made", "connection_lost"),
    # Of a notebook.
    *("repr_html", "error"),
    # Of the stores of other frameworks.
    *("similarity_search", "similarity_search_by_vector", "similarity_search_with_score"),
    *("similarity_search_with_score_by_vector", "max_marginal_relevance_search"),
    *("max_marginal_relevance_search_by_vector", "structured_query", "vector_query"),
    # Of a destination of dlt.
    *("raw_capabilities", "initialize_storage"),
    *("getDefaultReadLimit", "reportLatestOffset", "prepareForTriggerAvailableNow", "commit"),
}


def test_every_function_is_a_verb_phrase() -> None:
    assert sorted(name for path in SOURCES for name in _unnamed_acts(path)) == []


def test_file_names_are_unique() -> None:
    counts = Counter(path.name for path in SOURCES if path.name != "__init__.py")
    assert [name for name, count in counts.items() if count > 1] == []


def _unnamed_acts(path: Path) -> Iterator[str]:
    """The functions of a file whose names do not begin with a verb."""
    if "commands" in path.parts:
        return
    for owner, function in _functions(ast.parse(path.read_text()), owner=None):
        name = function.name.strip("_")
        first = name.split("_")[0]
        is_noun = owner in NOUNS or name in DEMANDED or name.endswith("_of")
        if not (is_noun or first in VERBS or first in STATEMENTS or _is_property(function)):
            yield f"{path.name}: {owner or ''}.{function.name}"


def _functions(
    tree: ast.Module | ast.ClassDef | ast.If, *, owner: str | None
) -> Iterator[tuple[str | None, ast.FunctionDef]]:
    for node in tree.body:
        if isinstance(node, ast.If):
            yield from _functions(node, owner=owner)
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node, owner=node.name)
        elif isinstance(node, ast.FunctionDef) and not node.name.startswith("__"):
            yield owner, node


def _is_property(function: ast.FunctionDef) -> bool:
    names = [ast.unparse(each).split("(")[0] for each in function.decorator_list]
    return any(name.endswith(("property", "setter", "overload")) for name in names)
