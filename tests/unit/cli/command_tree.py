"""Every verb of the command line, found by walking the command tree, and arguments that fit it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, get_args, get_origin

from omnigraph.cli.app import build_command_tree


@dataclass(frozen=True, slots=True)
class Parameter:
    """An option or an argument of a verb; `kind` is the type of its value, or of each of them."""

    name: str
    spelling: str
    kind: type
    is_option: bool
    is_required: bool

    @property
    def choices(self) -> tuple[str, ...]:
        """The words that the value may be, if it is a choice."""
        return tuple(self.kind) if issubclass(self.kind, StrEnum) else ()

    def given(self, value: object) -> list[str]:
        """The words that give the parameter a value."""
        return [self.spelling, str(value)] if self.is_option else [str(value)]


@dataclass(frozen=True, slots=True)
class Verb:
    """A command that does something: the words that name it, and what it takes."""

    path: tuple[str, ...]
    parameters: tuple[Parameter, ...]

    @property
    def is_json(self) -> bool:
        """Whether the verb can answer with a JSON document."""
        return self.parameter("--json") is not None

    def parameter(self, spelling: str) -> Parameter | None:
        """The parameter that is spelled so."""
        return next((each for each in self.parameters if each.spelling == spelling), None)

    def line(self, values: Mapping[str, object], *, replaced: Parameter | None = None) -> list[str]:
        """A command line with every required parameter, except one that the caller gives itself."""
        words = list(self.path)
        for each in self.parameters:
            if each.is_required and each != replaced:
                fallback = each.choices[0] if each.choices else "nothing"
                words += each.given(values.get(each.name, fallback))
        return words

    def __str__(self) -> str:
        return " ".join(self.path)


def verbs() -> list[Verb]:
    """Every verb, hidden ones too, in the order of the tree."""
    return list(_below(build_command_tree(), ()))


def plausible_values(folder: Path, store: object) -> dict[str, object]:
    """Values of required parameters that a verb can work with, by the names of the parameters."""
    return {
        "uri": store,
        "schema_path": folder / "s.pg",
        "path": folder / "s.pg",
        "paths": folder / "s.pg",
        "query_path": folder / "everyone.gq",
        "out": folder / "out",
        "type_name": "Person",
        "entity_id": "ada",
        "names": "main",
    }


def _below(command: Any, path: tuple[str, ...]) -> Iterator[Verb]:  # Any: of the CLI library
    children = getattr(command, "commands", None)
    if children is None:
        yield Verb(path, tuple(map(_parameter, command.params)))
        return
    for name, child in children.items():
        yield from _below(child, (*path, name))


def _parameter(parameter: Any) -> Parameter:  # Any: of the CLI library
    annotation = parameter.type_descriptor.annotation
    kind = get_args(annotation)[0] if get_origin(annotation) is list else annotation
    return Parameter(
        name=parameter.name,
        spelling=parameter.opts[0],
        kind=kind,
        is_option=parameter.param_type_name == "option",
        is_required=bool(parameter.required),
    )
