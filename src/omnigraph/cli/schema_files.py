"""Schema files that commands are given, checked before anything else happens."""

from __future__ import annotations

from pathlib import Path

from omnigraph.cli.files import read_source
from omnigraph.cli.views import fail, print_diagnostics
from omnigraph.schema import Catalog, compile_schema


def schema_text(path: Path) -> str:
    """The text of a schema file; if it has errors they are told and the command fails."""
    text = read_source(path)
    _compiled(path, text)
    return text.decode()


def schema_catalog(path: Path) -> Catalog:
    """What a schema file declares; if it has errors they are told and the command fails."""
    return _compiled(path, read_source(path))


def _compiled(path: Path, text: bytes) -> Catalog:
    compiled = compile_schema(text, name=str(path))
    print_diagnostics(compiled.diagnostics)
    if compiled.catalog is None:
        fail(f"{path}: the schema has errors")
    return compiled.catalog
