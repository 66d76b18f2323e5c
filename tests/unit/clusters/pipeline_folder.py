"""Configurations with pipelines for tests: two graphs, a source of CSV, a mapping for each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from omnigraph.clusters.cluster_documents import ClusterDocument
from omnigraph.clusters.control_plane import ControlPlane
from unit.clusters.cluster_folder import write_config

CSV = "login,years\nada,36\nbo,41\n"
SOURCE = """\
providers:
  source:
    crm: { kind: files, paths: people.csv, format: csv }
"""
PEOPLE_MAP = """\
nodes:
  - type: Person
    set: {name: login, age: int(years)}
"""
TASKS_MAP = """\
nodes:
  - type: Task
    set: {title: login}
"""
# What the runs of the pipeline may do.
LOADERS = """\
  - id: pipelines-load
    allow: { actors: { group: loaders }, actions: [read, change], branch_scope: any }
"""
DEFINITION = """\
source: provider.source.crm
schedule: "* * * * *"
into:
  - {graph: people, map: people.map.yaml}
  - {graph: graph.tasks, map: tasks.map.yaml}
"""


def write_pipeline(folder: Path, definition: str = DEFINITION) -> Path:
    """The folder of a cluster with one pipeline, and its source beside it."""
    write_config(folder)
    path = folder / "cluster.yaml"
    path.write_text(path.read_text() + SOURCE + "pipelines: { crm: pipelines/crm.yaml }\n")
    bundle = (folder / "staff.yaml").read_text()
    bundle = bundle.replace("protected_branches", "  loaders: ['pipeline:crm']\nprotected_branches")
    (folder / "staff.yaml").write_text(bundle + LOADERS)
    files = {
        "pipelines/crm.yaml": definition,
        "pipelines/people.map.yaml": PEOPLE_MAP,
        "pipelines/tasks.map.yaml": TASKS_MAP,
        "people.csv": CSV,
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    return folder


def edit(folder: Path, name: str, old: str, new: str) -> None:
    """Change a file."""
    text = (folder / name).read_text()
    assert old in text, old
    (folder / name).write_text(text.replace(old, new))


def do(folder: Path, verb: str, *arguments: Any, **options: Any) -> dict[str, Any]:  # Any: JSON
    """The document of a verb, whose findings have their codes alone."""
    document: ClusterDocument = getattr(ControlPlane(str(folder), "ada"), verb)(
        *arguments, **options
    )
    found = document.to_json()
    return found | {"codes": [each["code"] for each in found["diagnostics"]]}


def apply_all(folder: Path) -> dict[str, Any]:  # Any: JSON
    """Apply a folder for the first time."""
    assert do(folder, "import_state")["ok"]
    found = do(folder, "apply")
    assert found["converged"], found["diagnostics"]
    return found


def changes_of(document: dict[str, Any]) -> dict[str, dict[str, Any]]:  # Any: JSON
    """The changes of a document by resource."""
    return {each["resource"]: each for each in document["changes"]}
