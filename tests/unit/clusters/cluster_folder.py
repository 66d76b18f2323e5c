"""A folder of configuration for tests: two graphs, three stored queries, two bundles."""

from __future__ import annotations

from pathlib import Path

SCHEMA = "node Person {\n  name: String @key\n  age: I32?\n}\n"
WIDER = SCHEMA.replace("age: I32?", "age: I32?\n  city: String?")
QUERIES = """\
query find_person($name: String) @description("Finds one.") {
  match { $p: Person { name: $name } }
  return { $p.name, $p.age }
}

query add_person($name: String, $age: I32?) {
  insert Person { name: $name, age: $age }
}
"""
TASKS = "node Task {\n  title: String @key\n}\n"
TASK_QUERY = "query all_tasks() {\n  match { $t: Task }\n  return { $t.title }\n}\n"
BUNDLE = """\
version: 1
groups:
  staff: [act-ada]
protected_branches: [main]
rules:
  - id: staff-read
    allow: { actors: { group: staff }, actions: [read], branch_scope: any }
  - id: staff-maintain
    allow: { actors: { group: staff }, actions: [admin] }
  - id: staff-call
    allow: { actors: { group: staff }, actions: [invoke_query], carries: [change] }
"""
SERVER_BUNDLE = """\
version: 1
groups:
  staff: [act-ada]
rules:
  - id: staff-list
    allow: { actors: { group: staff }, actions: [graph_list] }
"""
CONFIG = """\
version: 1
{storage}graphs:
  people:
    schema: people.pg
    queries: queries/people
  tasks:
    schema: tasks.pg
    queries:
      all_tasks: {{ file: queries/tasks.gq }}
policies:
  staff: {{ file: staff.yaml, applies_to: [people, tasks] }}
  front: {{ file: front.yaml, applies_to: [cluster] }}
"""


def write_config(folder: Path, storage: str | None = None) -> Path:
    """The folder, with everything that its configuration names."""
    files = {
        "cluster.yaml": CONFIG.format(storage="" if storage is None else f"storage: {storage}\n"),
        "people.pg": SCHEMA,
        "tasks.pg": TASKS,
        "queries/people/people.gq": QUERIES,
        "queries/tasks.gq": TASK_QUERY,
        "staff.yaml": BUNDLE,
        "front.yaml": SERVER_BUNDLE,
    }
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def remove_tasks(folder: Path) -> None:
    """Leave the graph of tasks out of the configuration."""
    text = (folder / "cluster.yaml").read_text()
    start, end = text.index("  tasks:\n"), text.index("policies:")
    text = text[:start] + text[end:]
    (folder / "cluster.yaml").write_text(text.replace("[people, tasks]", "[people]"))
