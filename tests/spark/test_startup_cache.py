"""The start-up cache of Java on a machine that has much other work."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnigraph.spark import java_runtime

# A Java that says it lies elsewhere, and whose cache is there some time after its end.
_LATE_JAVA = """#!/bin/sh
if [ "$1" = -XshowSettings:properties ]; then
  '{java}' "$@" 2>&1 | sed 's|java.home = .*|java.home = {home}|'
  exit
fi
made=
for a do
  shift
  case "$a" in
    -XX:AOTCacheOutput=*) made="${{a#*=}}"; set -- "$@" "$a.early" ;;
    *) set -- "$@" "$a" ;;
  esac
done
'{java}' "$@"
status=$?
[ -z "$made" ] || {{ sleep {seconds}; mv "$made.early" "$made"; }}
exit $status
"""


@pytest.mark.timeout(1200)
def test_a_java_that_ends_late_leaves_its_startup_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java = java_runtime.find_java().home / "bin" / "java"
    seconds = java_runtime.choose_end_seconds({}) + 2
    program = tmp_path / "late" / "bin" / "java"
    program.parent.mkdir(parents=True)
    text = _LATE_JAVA.format(java=java, home=tmp_path / "late", seconds=seconds)
    program.write_text(text)
    program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "late"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    made = java_runtime.build_startup_cache()
    assert made is not None
    assert made.stat().st_size > 0
    assert java_runtime.find_startup_cache() == made
