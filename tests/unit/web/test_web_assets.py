"""The files of the web interface: complete, from the lock file, and from this machine alone."""

from __future__ import annotations

import hashlib
import json
import posixpath
import re
from pathlib import Path

from omnigraph.web.web_assets import FOLDER, WebAssets, load_assets

PROJECT = Path(__file__).parents[3] / "web"
STATIC = FOLDER / "static"
IMPORT = re.compile(
    r"""(?:from|import\()\s*"(\.[^"]+)"|new URL\("(\.[^"]+)", import\.meta\.url\)"""
)
# Names of things in pictures, which nothing is loaded from.
NAMESPACES = {"http://www.w3.org/2000/svg"}


def read_modules() -> dict[str, str]:
    return {path.relative_to(FOLDER).as_posix(): path.read_text() for path in STATIC.rglob("*.js")}


def find_imports(path: str, text: str) -> set[str]:
    names = {one or other for one, other in IMPORT.findall(text)}
    return {posixpath.normpath(posixpath.join(path, "..", each)) for each in names}


def test_every_import_leads_to_a_file_and_every_module_is_imported() -> None:
    modules = read_modules()
    used = {each for path, text in modules.items() for each in find_imports(path, text)}
    assert {each for each in used if not (FOLDER / each).is_file()} == set()
    assert set(modules) - used == {"static/main.js"}


def test_modules_are_small_and_load_nothing_from_elsewhere() -> None:
    files = [*STATIC.rglob("*.js"), *STATIC.rglob("*.css"), *STATIC.rglob("*.html")]
    for path in files:
        text = path.read_text()
        assert len(text.splitlines()) <= 500, path
        assert set(re.findall(r"https?://[^\s\"'`)]+", text)) <= NAMESPACES, path
        assert not re.search(r"innerHTML|dangerouslySetInnerHTML|\beval\(|new Function", text), path


def test_the_page_loads_all_modules_of_the_first_view_at_once() -> None:
    page = load_assets().page.content.decode()
    listed = set(re.findall(r'modulepreload" href="/ui/assets/\w+/([^"]+)"', page))
    assert {"static/main.js", "static/graph_shell.js", "vendor/preact.js"} <= listed
    # The editor and the drawing are large, and not needed for it.
    assert not {each for each in listed if "codemirror" in each or "sigma" in each}
    assert re.search(r"\son\w+=|<style|style=", page) is None


def test_another_file_makes_other_addresses(tmp_path: Path) -> None:
    (tmp_path / "static").mkdir()
    (tmp_path / "static/index.html").write_text("<!-- modules -->{assets}")
    (tmp_path / "static/main.js").write_text("1")
    first = WebAssets(tmp_path)
    (tmp_path / "static/main.js").write_text("2")
    assert WebAssets(tmp_path).digest != first.digest
    assert first.page.content.decode().endswith(f"/ui/assets/{first.digest}/")


def test_the_bundles_are_those_of_the_lock_file() -> None:
    manifest = json.loads((FOLDER / "vendor/manifest.json").read_text())
    lock = json.loads((PROJECT / "package-lock.json").read_text())["packages"]
    assert {path.name for path in (FOLDER / "vendor").glob("*.js")} == set(manifest)
    licences = (FOLDER / "vendor/licences.txt").read_text()
    for name, bundle in manifest.items():
        content = (FOLDER / "vendor" / name).read_bytes()
        assert hashlib.sha256(content).hexdigest() == bundle["sha256"], f"build {name} again"
        for package, found in bundle["packages"].items():
            locked = lock[f"node_modules/{package}"]
            assert {key: locked[key] for key in ("version", "integrity")} == found, package
            assert f"{package} {found['version']}\n" in licences
    # What is declared is in a bundle: nothing is installed for nothing.
    declared = json.loads((PROJECT / "package.json").read_text())["dependencies"]
    bundled = {each for bundle in manifest.values() for each in bundle["packages"]}
    assert set(declared) <= bundled
    assert not [each for each in lock.values() if "resolved" in each]
