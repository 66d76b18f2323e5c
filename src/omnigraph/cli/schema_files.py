"""Schema files that commands are given, checked before anything else happens."""

from __future__ import annotations

from pathlib import Path

from omnigraph.cli.files import read_source
from omnigraph.cli.views import print_diagnostics
from omnigraph.errors import CompileError
from omnigraph.schema import Catalog, compile_schema


def read_schema_text(path: Path) -> str:
    """The text of a schema file; raises `CompileError` if it has errors."""
    text = read_source(path)
    _compile_catalog(path, text)
    return text.decode()


def read_schema_catalog(path: Path) -> Catalog:
    """What a schema file declares; raises `CompileError` if it has errors."""
    return _compile_catalog(path, read_source(path))


def _compile_catalog(path: Path, text: bytes) -> Catalog:
    compiled = compile_schema(text, name=str(path))
    if compiled.catalog is None:
        raise CompileError(compiled.diagnostics)
    print_diagnostics(compiled.diagnostics)
    return compiled.catalog
