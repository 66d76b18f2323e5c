"""The Python reference: public names with their signatures and docstrings."""

from __future__ import annotations

import dataclasses
import enum
import importlib
import inspect
from collections.abc import Iterator
from typing import Literal, get_args, get_origin

_INTRODUCTION = """# Python

Every public name, with its signature and docstring. `omnigraph.create`, `omnigraph.open` and
`omnigraph.connect` return a `Graph`; a `Branch` reads and writes, a `Snapshot` reads one commit.
`omnigraph.connect_async` returns their asynchronous twins, with the same methods, to be awaited.
All errors are listed in [the reference of errors](errors.md#exceptions).
"""
_MODULES = {
    "omnigraph": "What programs import",
    "omnigraph.engine": "What methods return and take",
    "omnigraph.schema": "Schemas as texts and catalogs, without a graph",
    "omnigraph.query": "Queries as texts, without a graph",
}


def describe_python() -> Iterator[str]:
    yield _INTRODUCTION
    shown: set[int] = set()
    for module, title in _MODULES.items():
        yield f"## `{module}`\n\n{title}.\n"
        imported = importlib.import_module(module)
        for name in sorted(imported.__all__):
            thing = getattr(imported, name)
            if inspect.ismodule(thing) or id(thing) in shown:
                continue
            shown.add(id(thing))
            yield from _describe(f"{module}.{name}", thing)


def _describe(path: str, thing: object) -> Iterator[str]:
    name = path.rpartition(".")[2]
    if inspect.isclass(thing):
        yield f"### class `{path}`\n\n{_doc(thing)}\n"
        # The methods of the others are those of the class without `Async`.
        if not name.startswith("Async"):
            yield from _describe_class(name, thing)
    elif get_origin(thing) is Literal:
        choices = ", ".join(f"`{each!r}`" for each in get_args(thing))
        yield f"### `{path}`\n\nOne of {choices}.\n"
    elif callable(thing):
        yield f"### `{path}`\n\n{_code(name, thing)}\n\n{_doc(thing)}\n"
    elif not name.startswith("__"):
        yield f"### `{path}`\n\nA constant: `{thing!r}`.\n"


def _describe_class(name: str, shown: type) -> Iterator[str]:
    if issubclass(shown, enum.Enum):
        yield f"Values: {', '.join(f'`{each.value}`' for each in shown)}.\n"
        return
    if dataclasses.is_dataclass(shown):
        fields = [each for each in dataclasses.fields(shown) if not each.name.startswith("_")]
        if fields:
            yield "| Field | Type |\n|---|---|"
            for each in fields:
                yield f"| `{each.name}` | `{_escape(_annotation(each.type))}` |"
            yield ""
    for member, value in _public_members(shown):
        yield from _describe_member(name, member, value)


def _public_members(shown: type) -> Iterator[tuple[str, object]]:
    """Members in order of definition, those of base classes after them."""
    seen: set[str] = set()
    for base in shown.__mro__:
        if not base.__module__.startswith("omnigraph"):
            continue
        for member, value in vars(base).items():
            if not member.startswith("_") and member not in seen:
                seen.add(member)
                yield member, value


def _describe_member(owner: str, member: str, value: object) -> Iterator[str]:
    match value:
        case property() if value.fget is not None:
            returned = _annotation(inspect.signature(value.fget).return_annotation)
            yield f"#### `{owner}.{member}`\n\nProperty: `{returned}`.\n\n{_doc(value)}\n"
        case classmethod() | staticmethod():
            function = value.__func__
            yield f"#### `{owner}.{member}`\n\n{_code(member, function)}\n\n{_doc(function)}\n"
        case _ if inspect.isfunction(value):
            yield f"#### `{owner}.{member}`\n\n{_code(member, value)}\n\n{_doc(value)}\n"


def _code(name: str, function: object) -> str:
    try:
        signature = inspect.signature(function)  # type: ignore[arg-type]
    except ValueError:
        return f"```text\n{name}(…)\n```"
    parts: list[str] = []
    is_keyword = False
    for each in signature.parameters.values():
        if each.name in ("self", "cls"):
            continue
        if each.kind is each.VAR_POSITIONAL:
            is_keyword = True
        elif each.kind is each.KEYWORD_ONLY and not is_keyword:
            is_keyword = True
            parts.append("*")
        parts.append(_parameter(each))
    returned = _annotation(signature.return_annotation)
    head = f"{name}({', '.join(parts)}) -> {returned}"
    if len(head) > 100:
        inner = "".join(f"    {part},\n" for part in parts)
        head = f"{name}(\n{inner}) -> {returned}"
    return f"```text\n{head}\n```"


def _parameter(parameter: inspect.Parameter) -> str:
    marks = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}
    text = marks.get(parameter.kind, "") + parameter.name
    if parameter.annotation is not parameter.empty:
        text += f": {_annotation(parameter.annotation)}"
    if parameter.default is not parameter.empty:
        # The `repr` of a function has an address, which differs in each run.
        is_function = inspect.isfunction(parameter.default)
        text += " = …" if is_function else f" = {parameter.default!r}"
    return text


def _annotation(annotation: object) -> str:
    if annotation is inspect.Signature.empty:
        return "None"
    if isinstance(annotation, str):
        return annotation
    if inspect.isclass(annotation):
        return annotation.__name__
    return str(annotation).replace("typing.", "")


def _doc(thing: object) -> str:
    text = inspect.getdoc(thing) or ""
    lines: list[str] = []
    is_indented = False
    for line in text.splitlines():
        # Indented lines are an example or a table: they keep their line ends.
        if line.startswith("    ") and not is_indented:
            lines.append("```text")
        elif line and not line.startswith("    ") and is_indented:
            lines.append("```\n")
        if line:
            is_indented = line.startswith("    ")
        lines.append(line)
    if is_indented:
        lines.append("```")
    return "\n".join(lines)


def _escape(text: str) -> str:
    return text.replace("|", "\\|")
