"""Tags that an upgrade moves while others list and delete them."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from golden.golden_archive import unpack
from omnigraph.errors import TagNotFoundError
from omnigraph.storage.objects import layout
from omnigraph.storage.objects.layout import Entry
from omnigraph.storage.objects.object_store import open_objects
from omnigraph.versioning.ref_events import RefEvents
from omnigraph.versioning.tags import Tags
from omnigraph.versioning.upgrade.move_tags import MoveTags

NAMES = ["drafted", "v1"]


class Interrupted:
    """Objects of which one operation is followed, once, by what another process does."""

    def __init__(self, folder: Path, operation: str, then: Callable[[], object]) -> None:
        self._objects = open_objects(str(folder), is_durable=False)
        self._operation = operation
        self._then: Callable[[], object] | None = then

    def __getattr__(self, name: str) -> Any:
        return getattr(self._objects, name)

    def list(self, prefix: str, *, after: str | None = None) -> Iterator[Entry]:
        found = [*self._objects.list(prefix, after=after)]
        self._go_on("list", prefix)
        return iter(found)

    def put_new(self, path: str, data: bytes) -> bool:
        self._go_on("put", path)
        return self._objects.put_new(path, data)

    def _go_on(self, operation: str, path: str) -> None:
        then = self._then
        if then is not None and operation == self._operation and path.startswith(layout.BRANCHES):
            self._then = None
            then()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return unpack("format-1", tmp_path)


def tags_of(objects: Any) -> Tags:
    return Tags(
        objects,
        RefEvents(objects),
        lambda: 1,
        require_retained=lambda _: None,
        begin_creation=lambda *_, **__: nullcontext(),
    )


def open_tags(folder: Path) -> Tags:
    return tags_of(open_objects(str(folder), is_durable=False))


def move(folder: Path) -> None:
    MoveTags(open_objects(str(folder), is_durable=False), lambda: 1).run(is_dry=False)


def names_of(tags: Tags) -> list[str]:
    return [tag.name for tag in tags.list()]


def test_a_tag_that_is_moved_during_a_list_is_in_it(folder: Path) -> None:
    tags = tags_of(Interrupted(folder, "list", lambda: move(folder)))
    assert names_of(tags) == NAMES
    assert names_of(open_tags(folder)) == NAMES


def test_a_tag_in_both_places_is_deleted_in_both(folder: Path) -> None:
    kept = shutil.copytree(folder / layout.TAGS, folder.parent / "tags")
    move(folder)
    shutil.copytree(kept, folder / layout.TAGS, dirs_exist_ok=True)
    open_tags(folder).delete("v1")
    with pytest.raises(TagNotFoundError):
        open_tags(folder).get("v1")
    move(folder)
    assert names_of(open_tags(folder)) == ["drafted"]


def test_a_tag_that_is_deleted_while_it_is_moved_stays_deleted(folder: Path) -> None:
    def delete() -> None:
        for name in NAMES:
            open_tags(folder).delete(name)

    objects: Any = Interrupted(folder, "put", delete)
    MoveTags(objects, lambda: 1).run(is_dry=False)
    assert names_of(open_tags(folder)) == []


def test_two_upgrades_at_once_keep_every_tag(folder: Path) -> None:
    objects: Any = Interrupted(folder, "put", lambda: move(folder))
    MoveTags(objects, lambda: 1).run(is_dry=False)
    assert names_of(open_tags(folder)) == NAMES
