"""Whatever Lance raises is a failure of the store that names its table: panics too."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from omnigraph.errors import StorageRefusedError
from omnigraph.storage import tables
from omnigraph.storage.tables.lance_errors import translate_lance_errors

FOLDER = Path(tables.__file__).parent
# Where tables are used; the other modules are only called from here.
GATEWAYS = ("lance_tables.py", "table_reader.py", "table_handles.py")
# What reaches Lance; `_create_scanner` is called within steps only.
_CALLS = {"scanner", "get_fragments", "fragment_ids", "schema", "lance_schema", "take_blobs"}


class PanicException(BaseException):
    """As Lance raises them: the class cannot be imported."""


def test_a_panic_is_an_error_that_names_its_table() -> None:
    with (
        pytest.raises(StorageRefusedError, match="scan t/Person: Lance panicked: boom") as refused,
        translate_lance_errors("scan", "t/Person"),
    ):
        raise PanicException("boom")
    assert "check --deep" in (refused.value.hint or "")


@pytest.mark.parametrize("module", GATEWAYS)
def test_every_call_of_lance_is_within_a_lance_step(module: str) -> None:
    tree = ast.parse((FOLDER / module).read_text())
    outside = [
        f"{module}:{node.lineno}"
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef) and function.name != "_create_scanner"
        for node in _outside_steps(function.body)
    ]
    assert outside == []


def _outside_steps(body: list[ast.stmt]) -> list[ast.Attribute]:
    found: list[ast.Attribute] = []
    pending: list[ast.AST] = list(body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.With) and any(_is_step(item) for item in node.items):
            continue
        if isinstance(node, ast.Attribute) and _reaches_lance(node):
            found.append(node)
        pending.extend(ast.iter_child_nodes(node))
    return found


def _is_step(item: ast.withitem) -> bool:
    call = item.context_expr
    return (
        isinstance(call, ast.Call)
        and isinstance(call.func, ast.Name)
        and (call.func.id == "translate_lance_errors")
    )


def _reaches_lance(node: ast.Attribute) -> bool:
    """Whether it is `dataset.scanner`, `self._dataset.schema` and the like."""
    base = node.value
    name = base.id if isinstance(base, ast.Name) else getattr(base, "attr", "")
    return name in ("dataset", "_dataset", "base", "latest") and node.attr in _CALLS
