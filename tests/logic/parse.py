"""Reads a `.gqt` logic test, strictly: whatever the format does not know is an error.

    # issue: none                       header lines: issue, red_on, notes, traversal
    # notes: what the file shows
    --- schema                          schema text; schema and seed: both or neither
    --- seed                            JSON lines, or `--- seed generate: v1 seed: 7` with YAML
    --- query [branch: N]               a read, `branch list` or `show x;`, after settings lines
    --- params                          a JSON object, or generated
    --- expect unordered                JSON lines; or `ordered`; or `error: text` without a body
    --- expect shape                    a `name: Type` line per column, after every rows expectation
    --- mutate [branch: N]              a mutation, a branch statement, or settings lines only
    --- expect affected: nodes=1 edges=0    or `ok`, `outcome: merged`, `error: text`
    --- restart                         close and open again
    --- loop $i 0 4                     or `--- foreach $x a b`; then steps, then `--- endloop`

A section runs to the next line that starts with three dashes and a blank. `${i}` is replaced in the
parameters and expectations of a loop. `runner` sections are read; files with `seam` or `concurrent`
sections are read and skipped.

Our additions:

- files in the folder `lenient` compile in lenient mode, all others in strict mode;
- `--- load jsonl mode: overwrite|append|merge|patch [dialect: strict|compatible] [branch: N]` loads
  the JSON lines of its body (in the strict dialect unless told otherwise) and is followed by
  `--- expect ok`, `--- expect loaded: Person=2 Knows=1` or `--- expect error: text`;
- `--- export [type: T] [branch: N]` is followed by `--- expect ordered` with the exact lines, or by
  `--- expect error: text`;
- a read with `after` or `total` has a last section `--- expect page: cursor=next total=4`, or
  `cursor=none` for the last page; the parameter `"<cursor>"` is the cursor of the read before;
- `ordered` is legal with every `order` clause, because ours are total for aggregates too.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from logic.case import (
    Case,
    CaseError,
    Dialect,
    ExportStep,
    GeneratedLoadStep,
    GeneratedParams,
    GivenParams,
    Header,
    LoadMode,
    LoadStep,
    Loop,
    MutateStep,
    Params,
    QueryStep,
    RestartStep,
    Step,
)
from logic.expectations import (
    EXPORT_KINDS,
    LOAD_KINDS,
    MUTATE_KINDS,
    QUERY_KINDS,
    SectionReader,
    parse_json_object,
    read_expectation,
)
from logic.generate import Recipe
from logic.loops import Substitution, parse_loop_title
from logic.recipes import read_params, read_recipe
from logic.runner_options import read_runner_options
from logic.sections import Section, cut, read_text
from logic.strict_yaml import YamlError

_U64_MAX = 2**64 - 1
_BRANCH = r"(?: branch: (?P<branch>\S+))?"
_GENERATE = r"generate: v1 seed: (?P<seed>[0-9]+)"
_SEED = re.compile(rf"seed(?: {_GENERATE})?")
_PARAMS = re.compile(rf"params(?: {_GENERATE})?")
_STATEMENT = re.compile(rf"(?:query|mutate){_BRANCH}")
_GENERATED_LOAD = re.compile(rf"load {_GENERATE} mode: (?P<mode>append|merge){_BRANCH}")
_JSONL_LOAD = re.compile(
    r"load jsonl mode: (?P<mode>overwrite|append|merge|patch)"
    rf"(?: dialect: (?P<dialect>strict|compatible))?{_BRANCH}"
)
_EXPORT = re.compile(rf"export(?: type: (?P<type>\S+))?{_BRANCH}")
_TRAVERSALS = ("indexed", "csr", "auto")
_FILE_NAME = re.compile(r"(?:issue_(?P<issue>[0-9]+)_)?[a-z0-9_]+\.gqt")
# Embeddings need a provider outside of this process.
_NEAREST_TEXT = re.compile(r"\bnearest\s*\([^,()]*,\s*(?:\"|\$(?P<variable>\w+))")


T = TypeVar("T")


def parse_case(data: bytes, *, name: str) -> Case:
    """The case in the bytes of a file; `name` is the file's name."""
    entries, sections = cut(read_text(data))
    header = _header(entries, name)
    reader = SectionReader(sections)
    section = reader.take_if("runner")
    runner = None if section is None else _yaml(section, read_runner_options)
    schema, seed = _setup(reader)
    steps: list[Step | Loop] = []
    while (section := reader.peek()) is not None:
        is_loop = section.kind in ("loop", "foreach")
        step = _loop(reader) if is_loop else _step(reader, None)
        if step is not None:
            steps.append(step)
    return Case(header, schema, seed, tuple(steps), runner, reader.skip_reason)


def _header(entries: list[tuple[str, str, int]], name: str) -> Header:
    known = {"issue", "red_on", "notes", "traversal"}
    single: dict[str, str] = {}
    notes = []
    for key, value, line in entries:
        if key not in known:
            raise CaseError(f"unknown header '{key}'", line=line)
        if key == "notes":
            notes.append(value)
        elif key in single:
            raise CaseError(f"header '{key}' is repeated", line=line)
        else:
            single[key] = value
    issue = _issue(single.get("issue"), name)
    if issue is not None and "red_on" not in single:
        raise CaseError("an issue number needs a 'red_on' header", line=1)
    traversal = single.get("traversal")
    if traversal is not None and traversal not in _TRAVERSALS:
        raise CaseError(f"'{traversal}' is no traversal: use {', '.join(_TRAVERSALS)}", line=1)
    return Header(issue, single.get("red_on"), tuple(notes), traversal)


def _issue(text: str | None, name: str) -> int | None:
    file_name = _FILE_NAME.fullmatch(name)
    if file_name is None:
        raise CaseError(f"file name '{name}' is not made of a-z, 0-9 and _", line=1)
    if text is None or not (text == "none" or (text.isascii() and text.isdigit())):
        raise CaseError("header '# issue: N' or '# issue: none' is missing", line=1)
    issue = None if text == "none" else int(text)
    if (file_name["issue"] and int(file_name["issue"])) != issue:
        raise CaseError(f"file name '{name}' does not carry issue {text}", line=1)
    return issue


def _setup(reader: SectionReader) -> tuple[str, str | Recipe]:
    schema = reader.take_if("schema")
    if schema is None:
        if (seed := reader.take_if("seed")) is not None:
            raise CaseError("a seed needs a schema", line=seed.line)
        return "", ""
    if schema.title != "schema":
        raise CaseError(f"unknown section '{schema.title}'", line=schema.line)
    if re.search(r"@embed\b", schema.body):
        raise CaseError("'@embed' needs an outside provider", line=schema.line)
    seed = reader.take_if("seed")
    if seed is None:
        raise CaseError("a schema needs a seed", line=schema.line)
    found = _title(_SEED, seed)
    if found["seed"] is not None:
        return schema.body, _yaml_recipe(seed, found["seed"])
    return schema.body, jsonl_body(seed)


def _loop(reader: SectionReader) -> Loop:
    section = reader.take()
    variable, values = parse_loop_title(section)
    first = Substitution(variable, values[0])
    steps: list[Step] = []
    while (inner := reader.peek()) is not None and inner.title != "endloop":
        if inner.kind in ("loop", "foreach", "seam"):
            raise CaseError(f"'{inner.kind}' cannot stand in a loop", line=inner.line)
        step = _step(reader, first)
        if step is not None:
            steps.append(step)
    if reader.take_if("endloop") is None:
        raise CaseError("the loop has no 'endloop'", line=section.line)
    return Loop(variable, values, tuple(steps))


def _step(reader: SectionReader, loop: Substitution | None) -> Step | None:
    section = reader.take()
    refuse_placeholders(section)
    read = _STEPS.get(section.kind)
    if read is None:
        raise CaseError(f"section '{section.title}' is unknown or misplaced", line=section.line)
    return read(section, reader, loop)


def _query(section: Section, reader: SectionReader, loop: Substitution | None) -> Step:
    found, text = _title(_STATEMENT, section), _text(section)
    params = _params(reader, loop)
    expect = read_expectation(reader, section, kinds=QUERY_KINDS, loop=loop)
    return QueryStep(text, params, expect, section.line, found["branch"])


def _mutate(section: Section, reader: SectionReader, loop: Substitution | None) -> Step:
    found, text = _title(_STATEMENT, section), _text(section)
    params = _params(reader, loop)
    expect = read_expectation(reader, section, kinds=MUTATE_KINDS, loop=loop)
    return MutateStep(text, params, expect, section.line, found["branch"])


def _load(section: Section, reader: SectionReader, loop: Substitution | None) -> Step:
    generated = _GENERATED_LOAD.fullmatch(section.title)
    if generated is not None:
        recipe = _yaml_recipe(section, generated["seed"])
        expect = read_expectation(reader, section, kinds=LOAD_KINDS, loop=loop)
        mode = LoadMode(generated["mode"])
        return GeneratedLoadStep(recipe, mode, expect, section.line, generated["branch"])
    found = _title(_JSONL_LOAD, section)
    expect = read_expectation(reader, section, kinds=LOAD_KINDS, loop=loop)
    return LoadStep(
        jsonl_body(section),
        mode=LoadMode(found["mode"]),
        dialect=Dialect(found["dialect"] or "strict"),
        expect=expect,
        line=section.line,
        branch=found["branch"],
    )


def _export(section: Section, reader: SectionReader, loop: Substitution | None) -> Step:
    found = _title(_EXPORT, section)
    _refuse_body(section)
    expect = read_expectation(reader, section, kinds=EXPORT_KINDS, loop=loop)
    return ExportStep(found["type"], expect, section.line, found["branch"])


def _restart(section: Section, reader: SectionReader, loop: Substitution | None) -> Step:
    del reader, loop
    if section.title != "restart":
        raise CaseError(f"unknown section '{section.title}'", line=section.line)
    _refuse_body(section)
    return RestartStep(section.line)


def _seam(section: Section, reader: SectionReader, loop: Substitution | None) -> None:
    del loop
    following = reader.peek()
    if following is None or following.kind not in ("mutate", "load"):
        raise CaseError("a seam stands before a mutate or load step", line=section.line)
    reader.skip_reason = "needs fault injection (seam)"


def _concurrent(section: Section, reader: SectionReader, loop: Substitution | None) -> None:
    del loop
    expect = reader.take_if("expect")
    if expect is None or expect.title != "expect":
        raise CaseError("'concurrent' needs a bare '--- expect'", line=section.line)
    reader.skip_reason = "needs concurrent clients"


_STEPS: dict[str, Callable[[Section, SectionReader, Substitution | None], Step | None]] = {
    "query": _query,
    "mutate": _mutate,
    "load": _load,
    "export": _export,
    "restart": _restart,
    "seam": _seam,
    "concurrent": _concurrent,
}


def _params(reader: SectionReader, loop: Substitution | None) -> Params:
    section = reader.take_if("params")
    if section is None:
        return None
    found = _title(_PARAMS, section)
    if found["seed"] is not None:
        refuse_placeholders(section)
        generators = _yaml(section, read_params)
        return GeneratedParams(_u64(found["seed"], section), generators)
    text = section.body
    sample = loop.apply(text, line=section.line) if loop else text
    if loop is None:
        refuse_placeholders(section)
    parse_json_object(sample, line=section.line)
    return GivenParams(text)


def _text(section: Section) -> str:
    text = section.body
    if not text.strip():
        raise CaseError(f"'{section.kind}' needs a body", line=section.line)
    for found in _NEAREST_TEXT.finditer(text):
        variable = found["variable"]
        if variable is None or re.search(rf"\${variable}\s*:\s*String\b", text):
            raise CaseError("'nearest' with a text needs an outside provider", line=section.line)
    return text


def jsonl_body(section: Section) -> str:
    """The JSON lines of a body; comments are refused, blank lines skipped."""
    refuse_placeholders(section)
    for offset, line in enumerate(section.lines, start=1):
        if line.startswith("#"):
            raise CaseError("comment inside JSON lines", line=section.line + offset)
    return "".join(row + "\n" for row in section.rows)


def refuse_placeholders(section: Section) -> None:
    """Placeholders mean something in the parameters and expectations of a loop only."""
    for offset, line in enumerate((section.title, *section.lines)):
        if "${" in line:
            raise CaseError("'${' is not allowed here", line=section.line + offset)


def _refuse_body(section: Section) -> None:
    if section.body.strip():
        raise CaseError(f"'{section.kind}' takes no body", line=section.line)


def _title(pattern: re.Pattern[str], section: Section) -> re.Match[str]:
    found = pattern.fullmatch(section.title)
    if found is None:
        raise CaseError(f"malformed section '{section.title}'", line=section.line)
    return found


def _u64(text: str, section: Section) -> int:
    value = int(text)
    if value > _U64_MAX:
        raise CaseError(f"seed {text} does not fit 64 bits", line=section.line)
    return value


def _yaml_recipe(section: Section, seed: str) -> Recipe:
    value = _u64(seed, section)
    return _yaml(section, lambda text: read_recipe(text, seed=value))


def _yaml(section: Section, read: Callable[[str], T]) -> T:
    try:
        return read(section.body)
    except YamlError as failure:
        raise CaseError(str(failure), line=section.line) from failure
