"""A property being checked."""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.diagnostics import Span
from omnigraph.schema import ast
from omnigraph.schema.catalog import Property


@dataclass(frozen=True, slots=True)
class PropertyDraft:
    """What the text says about a property, and the property it means."""

    # The type or interface that writes the property.
    owner: str
    syntax: ast.Property
    meant: Property
    # False when the written type was refused: what depends on the type is then not checked.
    has_type: bool

    @property
    def name(self) -> str:
        """The property's name."""
        return self.meant.name

    @property
    def path(self) -> str:
        """How messages name the property."""
        return f"{self.owner}.{self.name}"

    def find_annotation(self, name: str) -> ast.Annotation | None:
        """The first annotation of a name."""
        return next((found for found in self.syntax.annotations if found.name.text == name), None)

    def span_of(self, name: str) -> Span:
        """Where an annotation stands, or the property if it has none."""
        annotation = self.find_annotation(name)
        return annotation.span if annotation else self.syntax.span
