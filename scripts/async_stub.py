"""The stub of the asynchronous handles, generated from the classes of the engine.

python scripts/async_stub.py
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from omnigraph.aio import async_handles
from omnigraph.aio.async_members import AsyncHandle

ROOT = Path(__file__).resolve().parents[1]
ENGINE = ROOT / "src" / "omnigraph" / "engine"
STUB = Path(async_handles.__file__).with_suffix(".pyi")
HEADER = (
    '"""Asynchronous handles; `scripts/async_stub.py` generates this file from the engine."""\n'
)
# The modules of each class, with those of its base classes.
SOURCES = {
    "Graph": ["graph.py", "graph_proposals.py"],
    "Branch": ["branch.py", "branch_merges.py", "branch_reads.py"],
    "Snapshot": ["snapshot.py"],
    "Proposal": ["proposals/proposal.py"],
    "ProposalDraft": ["proposals/proposal_drafts.py"],
    "Diff": ["diff/graph_diff.py"],
    "Blob": ["blob_reader.py"],
    "Baseline": ["feed/branch_feed.py"],
}
BASES = {
    "Branch": {"Branch", "BranchMerges", "BranchReads"},
    "Graph": {"Graph", "GraphProposals"},
}
# What a caller may pass where the engine takes a state.
STATE = "StateRef | AsyncBranch | AsyncSnapshot"


def main() -> None:
    STUB.write_text(build_stub())


def build_stub() -> str:
    """The text of the stub, formatted."""
    classes = [_build_class(name) for name in SOURCES]
    text = "\n\n".join([*_find_imports("\n".join(classes)), *classes])
    return _format(_format(HEADER + text, "check", "--fix", "--select", "I,UP"), "format")


def _build_class(name: str) -> str:
    twin: type[AsyncHandle[object]] = getattr(async_handles, f"Async{name}")
    lines = [f"class Async{name}(AsyncHandle[{name}], of={name}):"]
    seen: set[str] = set()
    for source in SOURCES[name]:
        tree = ast.parse((ENGINE / source).read_text())
        own: set[str] = set()
        for node in _find_functions(tree, BASES.get(name, {name})):
            if node.name not in seen and node.name not in twin.HIDDEN:
                own.add(node.name)
                lines += _build_member(node, is_immediate=node.name in twin.IMMEDIATE)
        seen |= own
    fields = sorted(each for each in twin.IMMEDIATE if each not in seen)
    for field in fields:
        lines += ["    @property", f"    def {field}(self) -> {_find_field(name, field)}: ..."]
    return "\n".join([*lines, *_build_protocol(name)])


def _find_functions(tree: ast.Module, classes: set[str]) -> Iterator[ast.FunctionDef]:
    """The public methods of classes; of an overloaded one, its overloads."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name in classes:
            found = [each for each in node.body if isinstance(each, ast.FunctionDef)]
            overloaded = {each.name for each in found if "overload" in _decorators(each)}
            for each in found:
                is_implementation = each.name in overloaded and "overload" not in _decorators(each)
                if not each.name.startswith("_") and not is_implementation:
                    yield each


def _decorators(node: ast.FunctionDef) -> set[str]:
    return {ast.unparse(each).rpartition(".")[2] for each in node.decorator_list}


def _build_member(node: ast.FunctionDef, *, is_immediate: bool) -> list[str]:
    decorators = _decorators(node)
    arguments = node.args
    for index, each in enumerate(arguments.kwonlyargs):
        if each.arg == "cancel":
            del arguments.kwonlyargs[index], arguments.kw_defaults[index]
    for each in [*arguments.args, *arguments.kwonlyargs]:
        if each.annotation is not None and ast.unparse(each.annotation) == "StateRef":
            each.annotation = ast.parse(STATE, mode="eval").body
    arguments.defaults = [_shorten(each) for each in arguments.defaults]
    arguments.kw_defaults = [each and _shorten(each) for each in arguments.kw_defaults]
    returned = _name_returned(node)
    head = f"{node.name}({ast.unparse(arguments)}) -> {returned}: ..."
    lines = ["    @overload"] if "overload" in decorators else []
    if is_immediate:
        lines += ["    @property"] if "property" in decorators else []
        return [*lines, f"    def {head}"]
    prefix = "def" if returned.startswith("AsyncIterator[") else "async def"
    return [*lines, f"    {prefix} {head}"]


def _shorten(default: ast.expr) -> ast.expr:
    """A default that needs no import."""
    return default if isinstance(default, ast.Constant) else ast.Constant(...)


def _name_returned(node: ast.FunctionDef) -> str:
    assert node.returns is not None, f"{node.name} has an annotation"
    text = ast.unparse(node.returns)
    if text.startswith("Iterator["):
        return f"Async{text}"
    last = text.rpartition(".")[2]
    return f"Async{last}" if last in SOURCES else text


def _find_field(name: str, field: str) -> str:
    """The annotation of an attribute that is not a method."""
    tree = ast.parse((ENGINE / SOURCES[name][0]).read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and node.name == name:
            for each in node.body:
                if isinstance(each, ast.AnnAssign) and ast.unparse(each.target) == field:
                    return ast.unparse(each.annotation)
    return "str"


def _build_protocol(name: str) -> list[str]:
    match name:
        case "Graph":
            return [
                "    async def __aenter__(self) -> AsyncGraph: ...",
                "    async def __aexit__(self, *_: object) -> None: ...",
            ]
        case "Diff":
            return [
                "    def __aiter__(self) -> AsyncIterator[EntityChange]: ...",
                "    def __len__(self) -> int: ...",
                "    def __bool__(self) -> bool: ...",
            ]
        case "Baseline":
            return ["    def __aiter__(self) -> AsyncIterator[JsonObject]: ..."]
        case _:
            return []


def _find_imports(classes: str) -> Iterator[str]:
    """The imports of all modules, of which those that the classes do not use are removed."""
    used = {each.id for each in ast.walk(ast.parse(classes)) if isinstance(each, ast.Name)}
    yield "from collections.abc import AsyncIterator"
    yield "from omnigraph.aio.async_members import AsyncHandle"
    yield f"from omnigraph import {', '.join(SOURCES)}"
    seen = set(SOURCES)
    for source in sorted({each for sources in SOURCES.values() for each in sources}):
        tree = ast.parse((ENGINE / source).read_text())
        own = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
        for name in sorted(own & used - seen):
            seen.add(name)
            yield f"from omnigraph.engine.{source[:-3].replace('/', '.')} import {name}"
        for node in ast.walk(tree):
            for alias in node.names if isinstance(node, ast.Import | ast.ImportFrom) else ():
                name = alias.asname or alias.name
                if name in used - seen:
                    seen.add(name)
                    clause = f" as {alias.asname}" if alias.asname else ""
                    origin = f"from {node.module} " if isinstance(node, ast.ImportFrom) else ""
                    yield f"{origin}import {alias.name}{clause}"


def _format(text: str, *command: str) -> str:
    line = [sys.executable, "-m", "ruff", *command, "--stdin-filename", str(STUB), "-"]
    return subprocess.run(
        line, input=text, capture_output=True, text=True, check=True, cwd=ROOT
    ).stdout


if __name__ == "__main__":
    main()
