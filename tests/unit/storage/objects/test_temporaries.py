from __future__ import annotations

from pathlib import Path

import pytest

from omnigraph.storage.objects import layout
from omnigraph.storage.objects.local_store import list_temporaries, remove_temporaries

NAME = ".tmp-17-0123456789abcdef"
OWN = [
    f"{layout.MANIFEST}/{NAME}",
    f"{layout.build_staging_folder('01ARZ3NDEKTSV4RRFFQ69G5FAV')}/{NAME}",
    f"{layout.build_checkpoint_folder('main.0')}/{NAME}",
    f"__pipelines/people/runs/01ARZ3NDEKTSV4RRFFQ69G5FAV/{NAME}",
]
OTHERS = [
    NAME,
    f"exports/{NAME}",
    f"rejects/{NAME}",
    f"t/Person-1.lance/data/{NAME}",
    f"inner/{layout.STAGING}/{NAME}",
    f"__manifest.old/{NAME}",
    f"{layout.MANIFEST}/.tmp-notes",
    "__pipelines/people/.tmp-17-notes",
]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for path in [*OWN, *OTHERS]:
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"half")
    return tmp_path


def test_only_files_of_the_graph_are_its_temporary_files(root: Path) -> None:
    found = list(list_temporaries(str(root)))
    assert sorted(entry.path for entry in found) == sorted(OWN)
    assert {entry.size for entry in found} == {4}


def test_what_is_removed_are_the_temporary_files_alone(root: Path) -> None:
    remove_temporaries(str(root), [entry.path for entry in list_temporaries(str(root))])
    left = [str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()]
    assert sorted(left) == sorted(OTHERS)


@pytest.mark.parametrize("uri", ["memory://graph", "s3://bucket/graph"])
def test_other_stores_have_none(uri: str) -> None:
    assert list(list_temporaries(uri)) == []
