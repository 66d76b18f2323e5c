from __future__ import annotations

import pytest

from omnigraph.errors import ParameterError
from omnigraph.lang.diagnostics import Collector, Diagnostic
from omnigraph.lang.source_text import Source
from omnigraph.query.ast import ResetSetting, SetSetting, Setting, Show
from omnigraph.query.query_settings import (
    SETTINGS,
    SettingScope,
    ValueSource,
    check_settings,
    find_value_problem,
    list_shown_settings,
    resolve_settings,
)
from omnigraph.schema.ast import Name


def assign(name: str, value: int | str) -> SetSetting:
    return SetSetting(Name(name), value, is_word=isinstance(value, str))


def problems(*lines: Setting | Show) -> tuple[Diagnostic, ...]:
    collector = Collector(Source("query.gq", ""))
    check_settings(lines, collector)
    return collector.list_diagnostics()


def test_every_default_fits_its_own_rule() -> None:
    assert [name for name, each in SETTINGS.items() if find_value_problem(each, each.default)] == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("engine", "v2"),
        ("merge_lineage", "verify"),
        ("ann_nprobes", 0),
        ("ann_nprobes", 10**12),
        ("traversal_work_limit", 2**63 - 1),
        ("history_release_bytes", 1024),
        ("write_max_bytes", 33_554_432),
    ],
)
def test_a_value_within_the_rule_is_accepted(name: str, value: int | str) -> None:
    assert problems(assign(name, value)) == ()


@pytest.mark.parametrize(
    ("name", "value", "fragments"),
    [
        ("engine", "v1", ["unknown value 'v1'", "v2"]),
        ("merge_lineage", "maybe", ["off, on, verify"]),
        ("merge_lineage", 1, ["one of: off, on, verify"]),
        ("ann_nprobes", "many", ["an integer of at least 0"]),
        ("traversal_work_limit", 0, ["from 1 to 9223372036854775807"]),
        ("history_release_bytes", 1023, ["from 1024 to 262144"]),
        ("write_max_bytes", 33_554_433, ["from 1 to 33554432"]),
        ("speed", 9, ["unknown setting 'speed'", "ann_nprobes, engine", "write_max_bytes"]),
        ("rrf_plan", "auto", ["belongs to the process"]),
        ("stage_write_concurrency", 8, ["belongs to the process"]),
    ],
)
def test_a_wrong_line_is_reported_with_the_rule(
    name: str, value: int | str, fragments: list[str]
) -> None:
    (found,) = problems(assign(name, value))
    assert found.code == "Q003"
    assert [part for part in fragments if part not in found.message] == []


def test_reset_and_show_need_a_known_name_too() -> None:
    assert [found.code for found in problems(ResetSetting(Name("nope")))] == ["Q003"]
    assert [found.code for found in problems(Show(Name("nope")))] == ["Q003"]
    assert [found.code for found in problems(ResetSetting(Name("rrf_plan")))] == ["Q003"]
    assert problems(ResetSetting(None), Show(None), Show(Name("rrf_plan"))) == ()


def test_a_misspelt_name_gets_a_hint() -> None:
    (found,) = problems(assign("ann_nprobe", 3))
    assert found.hint == "did you mean 'ann_nprobes'?"


def test_the_file_wins_over_the_request_and_the_request_over_the_process() -> None:
    settings = resolve_settings(
        [assign("ann_nprobes", 5), assign("ann_nprobes", 6)],
        request={"ann_nprobes": 4, "merge_lineage": "off"},
        process={"merge_lineage": "verify", "rrf_plan": "force_prefilter"},
    )
    seen = {name: (each.value, each.source) for name, each in settings.items()}
    assert seen["ann_nprobes"] == (6, ValueSource.FILE)
    assert seen["merge_lineage"] == ("off", ValueSource.REQUEST)
    assert seen["rrf_plan"] == ("force_prefilter", ValueSource.ENV)
    assert seen["engine"] == ("v2", ValueSource.DEFAULT)


def test_reset_goes_back_to_what_the_process_has() -> None:
    lines = [assign("ann_nprobes", 5), assign("merge_lineage", "off")]
    request = {"ann_nprobes": 4}
    one = resolve_settings([*lines, ResetSetting(Name("ann_nprobes"))], request=request)
    assert (one["ann_nprobes"].value, one["merge_lineage"].value) == (20, "off")
    every = resolve_settings([*lines, ResetSetting(None)], process={"ann_nprobes": 9})
    assert (every["ann_nprobes"].value, every["merge_lineage"].value) == (9, "on")


def test_show_gives_one_row_or_all_of_them_by_name() -> None:
    settings = resolve_settings([assign("ann_nprobes", 5)])
    (row,) = list_shown_settings(Show(Name("ann_nprobes")), settings)
    assert (row.name, row.value, row.default, row.source, row.scope) == (
        "ann_nprobes",
        5,
        20,
        ValueSource.FILE,
        SettingScope.REQUEST,
    )
    names = [each.name for each in list_shown_settings(Show(None), settings)]
    assert names == sorted(SETTINGS)


@pytest.mark.parametrize(
    ("request_settings", "fragment"),
    [
        ({"speed": 3}, "unknown setting 'speed'"),
        ({"ann_nprobes": "many"}, "takes an integer"),
        ({"rrf_plan": "auto"}, "belongs to the process"),
    ],
)
def test_a_request_may_only_have_settings_of_requests(
    request_settings: dict[str, int | str], fragment: str
) -> None:
    with pytest.raises(ParameterError, match=fragment):
        resolve_settings(request=request_settings)
