"""What an alias asks a server for."""

from __future__ import annotations

import pytest

from omnigraph import errors
from omnigraph.operator_config.alias_calls import build_call, find_alias
from omnigraph.operator_config.operator_settings import Alias, OperatorConfig

TRIAGE = Alias("triage", "prod", "week ly", "a/b", ("since", "until"), {"limit": 20, "since": 1})
CONFIG = OperatorConfig(servers={"prod": "http://h/"}, aliases={"triage": TRIAGE})


def test_arguments_win_over_the_alias_and_params_over_both() -> None:
    call = build_call(TRIAGE, ["5", "last week"], {"until": None}, CONFIG)
    assert call.url == "http://h/graphs/a%2Fb/queries/week%20ly"
    assert call.to_json() == {
        "params": {"limit": 20, "since": 5, "until": None},
        "branch": None,
        "snapshot": None,
        "expect_mutation": False,
    }
    assert build_call(TRIAGE, [], None, CONFIG).params == {"limit": 20, "since": 1}
    assert build_call(TRIAGE, ["[1]"], None, CONFIG).params["since"] == [1]


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(errors.AliasError, match="takes 2 arguments, and 3 are given") as refused:
        build_call(TRIAGE, ["1", "2", "3"], None, CONFIG)
    assert refused.value.hint == "its arguments: since, until"
    with pytest.raises(errors.AliasError, match="no alias") as refused:
        find_alias("nope", CONFIG)
    assert refused.value.hint == "known are triage"
    with pytest.raises(errors.AddressError, match="no server has the name 'gone'"):
        build_call(Alias("x", "gone", "q"), [], None, CONFIG)
