"""A schema, data and queries for the commands to work on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from typer.testing import Result

SCHEMA = """node Person {
  name: String @key
  age: I32?
  photo: Blob?
  @range(age, 0..150)
}
edge Knows: Person -> Person {
  since: Date?
}
"""
PEOPLE = [
    {"type": "Person", "data": {"name": "ada", "age": 36, "photo": "base64:AAECAwQFBgc="}},
    {"type": "Person", "data": {"name": "bob", "age": None, "photo": "base64:"}},
    {"type": "Person", "data": {"name": "eve", "age": 41}},
    {"edge": "Knows", "from": "ada", "to": "bob", "data": {"since": "2024-05-06"}},
]
EVERYONE = """query everyone() {
  match { $p: Person }
  return { $p.name as name, $p.age as age }
  order { $p.name asc }
}
"""
ADD = """query add($name: String, $age: I32?) {
  insert Person { name: $name, age: $age }
}
"""

# Runs a command in this process.
Run: TypeAlias = Callable[..., Result]
# Runs a command with `--json` that must succeed; Any: its document.
Answer: TypeAlias = Callable[..., Any]
