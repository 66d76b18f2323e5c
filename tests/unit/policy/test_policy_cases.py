"""Files of expected decisions."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnigraph.errors import PolicyInvalidError
from omnigraph.policy.policy_cases import find_mismatches, load_cases
from unit.policy.bundles import compile_text

CASES = """\
version: 1
cases:
  - {id: draft, actor: act-jo, action: change, branch: draft, expect: allow}
  - {id: main, actor: act-jo, action: change, branch: main, expect: deny}
  - {id: agent, actor: bot, action: invoke_query, query: report_x, expect: allow}
  - {id: partner, actor: pat, action: read, branch: main, type: Company, expect: allow}
"""


def test_cases_that_hold_have_no_mismatch(tmp_path: Path) -> None:
    path = tmp_path / "cases.yaml"
    path.write_text(CASES)
    cases = load_cases(path)
    assert len(cases) == 4
    assert find_mismatches(compile_text(), cases) == []


def test_all_mismatches_are_reported_together(tmp_path: Path) -> None:
    path = tmp_path / "cases.yaml"
    path.write_text(
        CASES.replace("expect: allow", "expect: DENY")
        .replace("expect: deny", "expect: allow")
        .replace("DENY", "deny")
    )
    found = list(map(str, find_mismatches(compile_text(), load_cases(path))))
    assert len(found) == 4
    assert found[0] == (
        "draft: expected deny, but policy allows 'change' on branch 'draft' to actor 'act-jo'"
        " (rule analysts-write-drafts)"
    )


def test_a_file_of_cases_is_strict(tmp_path: Path) -> None:
    path = tmp_path / "cases.yaml"
    case = "  - {id: a, actor: x, action: fly, expect: maybe, brnch: main}\n"
    path.write_text("version: 2\ncases:\n" + case + case)
    with pytest.raises(PolicyInvalidError) as caught:
        load_cases(path)
    told = "\n".join(map(str, caught.value.problems))
    for message in ("version 2", "unknown field 'brnch'", "'fly'", "'maybe'", "two cases"):
        assert message in told
