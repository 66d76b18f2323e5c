"""Text to catalog: parse, then check and build."""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.diagnostics import Diagnostic, Source
from omnigraph.errors import CompileError
from omnigraph.schema import ast
from omnigraph.schema.build import build_catalog
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.parser import parse_source
from omnigraph.syntax import Mode, decode_source


@dataclass(frozen=True, slots=True)
class CompiledSchema:
    """A text, its tree, and its catalog, which is None when a diagnostic is an error."""

    source: Source
    schema: ast.Schema
    catalog: Catalog | None
    diagnostics: tuple[Diagnostic, ...]


def compile_schema(
    text: str | bytes, *, name: str = "schema.pg", mode: Mode = Mode.LENIENT
) -> CompiledSchema:
    """Read and check a schema, reporting everything that is wrong with it."""
    source, collector = decode_source(name, text, code="S001")
    parsed = parse_source(source, collector, mode=mode)
    catalog = build_catalog(parsed, collector, mode=mode)
    found = None if collector.has_errors else catalog
    return CompiledSchema(source, parsed.schema, found, collector.list_diagnostics())


def load_catalog(
    text: str | bytes, *, name: str = "schema.pg", mode: Mode = Mode.LENIENT
) -> Catalog:
    """The catalog of a schema text; raises `CompileError` when it has errors."""
    compiled = compile_schema(text, name=name, mode=mode)
    if compiled.catalog is None:
        raise CompileError(compiled.diagnostics)
    return compiled.catalog
