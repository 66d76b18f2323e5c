"""The settings a file may change, and the rules for their values.

A value comes from the file, else from the request, else from the process (its environment), else
it is the default. `reset` in a file goes back to what the process has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from omnigraph.errors import ParameterError
from omnigraph.lang.diagnostics import Collector
from omnigraph.lang.quoting import sanitize_text
from omnigraph.lang.spellcheck import suggest_similar
from omnigraph.query.ast import ResetSetting, SetSetting, Setting, Show
from omnigraph.schema.ast import Name

SettingValue = int | str


class SettingScope(StrEnum):
    """Who may change a setting: each request, or only the process when it starts."""

    REQUEST = "request"
    PROCESS = "process"


class ValueSource(StrEnum):
    """Where the value in effect comes from."""

    DEFAULT = "default"
    ENV = "env"
    REQUEST = "request"
    FILE = "file"


@dataclass(frozen=True, slots=True)
class WordRule:
    """One of a few words."""

    words: tuple[str, ...]

    def __str__(self) -> str:
        return "one of: " + ", ".join(self.words)

    def allows(self, value: SettingValue) -> bool:
        """Whether a value fits."""
        return value in self.words


@dataclass(frozen=True, slots=True)
class IntegerRule:
    """An integer within inclusive bounds."""

    minimum: int
    maximum: int | None = None

    def __str__(self) -> str:
        if self.maximum is None:
            return f"an integer of at least {self.minimum}"
        return f"an integer from {self.minimum} to {self.maximum}"

    def allows(self, value: SettingValue) -> bool:
        """Whether a value fits."""
        if not isinstance(value, int):
            return False
        return value >= self.minimum and (self.maximum is None or value <= self.maximum)


@dataclass(frozen=True, slots=True)
class SettingDefinition:
    """A setting: its name, what it is for, what it may be, its default, who may change it."""

    name: str
    meaning: str
    rule: WordRule | IntegerRule
    default: SettingValue
    scope: SettingScope = SettingScope.REQUEST


_ALL = (
    SettingDefinition(
        "ann_nprobes",
        "accepted for compatibility; changes nothing: `nearest` looks at every vector",
        IntegerRule(0),
        20,
    ),
    SettingDefinition("engine", "the query engine; there is one", WordRule(("v2",)), "v2"),
    SettingDefinition(
        "history_release_bytes",
        "accepted for compatibility; changes nothing",
        IntegerRule(1024, 262_144),
        262_144,
    ),
    SettingDefinition(
        "merge_by",
        "whether a merge compares entities property by property, or whole",
        WordRule(("property", "entity")),
        "property",
    ),
    SettingDefinition(
        "merge_lineage",
        "accepted for compatibility; changes nothing",
        WordRule(("off", "on", "verify")),
        "on",
    ),
    SettingDefinition(
        "path_work_limit",
        "how many edges the paths of one request may look at before it is refused",
        IntegerRule(1, 2**63 - 1),
        100_000_000,
    ),
    SettingDefinition(
        "rrf_plan",
        "accepted for compatibility; changes nothing",
        WordRule(("auto", "force_prefilter", "force_postfilter")),
        "auto",
        SettingScope.PROCESS,
    ),
    SettingDefinition(
        "stage_write_concurrency",
        "accepted for compatibility; changes nothing",
        IntegerRule(1, 64),
        8,
        SettingScope.PROCESS,
    ),
    SettingDefinition(
        "traversal_work_limit",
        "how many edges the selections of one request may look at before it is refused",
        IntegerRule(1, 2**63 - 1),
        1_000_000,
    ),
    SettingDefinition(
        "write_max_bytes",
        "accepted for compatibility; changes nothing",
        IntegerRule(1, 33_554_432),
        33_554_432,
    ),
)
SETTINGS: Mapping[str, SettingDefinition] = {each.name: each for each in _ALL}


@dataclass(frozen=True, slots=True)
class EffectiveSetting:
    """A setting with the value in effect; its fields are the columns of `show`."""

    name: str
    value: SettingValue
    default: SettingValue
    source: ValueSource
    scope: SettingScope


def check_settings(lines: Iterable[Setting | Show], collector: Collector) -> None:
    """Report every line that names no setting, gives a wrong value, or may not be there."""
    for line in lines:
        if line.name is None:
            continue
        name = line.name.text
        if problem := _find_name_problem(name, is_change=not isinstance(line, Show)):
            collector.report_error("Q003", line.name.span, problem, hint=_suggest_setting(name))
        elif isinstance(line, SetSetting) and (
            problem := find_value_problem(SETTINGS[name], line.value)
        ):
            collector.report_error("Q003", line.span, problem)


def find_value_problem(definition: SettingDefinition, value: SettingValue) -> str | None:
    """Why a value does not fit a setting, or None if it does."""
    if definition.rule.allows(value):
        return None
    rule = definition.rule
    if isinstance(rule, WordRule) and isinstance(value, str):
        unknown = f"unknown value '{sanitize_text(value)}' for setting '{definition.name}'"
        return f"{unknown}; it takes {rule}"
    return f"setting '{definition.name}' takes {rule}, got '{sanitize_text(str(value))}'"


def _find_name_problem(name: str, *, is_change: bool) -> str | None:
    if name not in SETTINGS:
        return f"unknown setting '{name}'; the settings are {', '.join(SETTINGS)}"
    if is_change and SETTINGS[name].scope is SettingScope.PROCESS:
        return f"setting '{name}' belongs to the process and cannot be changed here"
    return None


def _suggest_setting(name: str) -> str | None:
    return None if name in SETTINGS else suggest_similar(name, SETTINGS)


def require_request_settings(settings: Mapping[str, SettingValue]) -> None:
    """Refuse settings that a request may not have, with a `ParameterError`."""
    # Programs pass what their callers gave, without types.
    if not isinstance(settings, Mapping):
        raise ParameterError(
            f"settings are values by name, and a {type(settings).__name__} has no names",
            hint="write {name: value}; `show all` lists the settings",
        )
    for name, value in settings.items():
        problem = _find_name_problem(name, is_change=True) or find_value_problem(
            SETTINGS[name], value
        )
        if problem is not None:
            raise ParameterError(problem, hint=_suggest_setting(name))


def resolve_settings(
    lines: Iterable[Setting] = (),
    *,
    request: Mapping[str, SettingValue] | None = None,
    process: Mapping[str, SettingValue] | None = None,
) -> dict[str, EffectiveSetting]:
    """Every setting with its value, by name, after the checked lines of a file.

    Raises `ParameterError` when the request has a setting it may not have.
    """
    require_request_settings(request or {})
    defaults = {
        each.name: EffectiveSetting(
            each.name, each.default, each.default, ValueSource.DEFAULT, each.scope
        )
        for each in SETTINGS.values()
    }
    from_process = _override(defaults, process or {}, ValueSource.ENV)
    values = _override(from_process, request or {}, ValueSource.REQUEST)
    for line in lines:
        match line:
            case ResetSetting(name=None):
                values = from_process
            case ResetSetting(name=Name(text=name)):
                values = {**values, name: from_process[name]}
            case SetSetting():
                values = _override(values, {line.name.text: line.value}, ValueSource.FILE)
    return values


def _override(
    values: dict[str, EffectiveSetting], given: Mapping[str, SettingValue], source: ValueSource
) -> dict[str, EffectiveSetting]:
    changed = {name: replace(values[name], value=given[name], source=source) for name in given}
    return {**values, **changed}


def list_shown_settings(
    statement: Show, settings: Mapping[str, EffectiveSetting]
) -> tuple[EffectiveSetting, ...]:
    """The rows of a (checked) `show`, by name."""
    names = sorted(settings) if statement.name is None else [statement.name.text]
    return tuple(settings[name] for name in names)
