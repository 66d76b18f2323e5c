"""When the config of a graph says that its vectors are made."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnigraph.clusters.cluster_config import read_config
from unit.clusters.cluster_folder import write_config

DOC = """
node Doc {
  slug: String @key
  text: String?
  vec: Vector(4)? @embed(text, model="demo")
}
"""


@pytest.mark.parametrize(
    ("mode", "schema", "code"),
    [
        ("never", DOC.replace(', model="demo"', ""), None),
        ("write", DOC, None),
        ("write", DOC.replace("Vector(4)?", "Vector(4)"), None),
        ("later", DOC, None),
        ("soon", DOC, "invalid_embed_mode"),
        ("write", DOC.replace(', model="demo"', ""), "embedding_model_required"),
        ("later", DOC.replace(', model="demo"', ""), "embedding_model_required"),
        ("later", DOC.replace("Vector(4)?", "Vector(4)"), "embedding_vector_required"),
    ],
)
def test_a_graph_says_when_its_vectors_are_made(
    tmp_path: Path, mode: str, schema: str, code: str | None
) -> None:
    folder = write_config(tmp_path)
    with (folder / "people.pg").open("a") as file:
        file.write(schema)
    text = (folder / "cluster.yaml").read_text()
    (folder / "cluster.yaml").write_text(
        text.replace("schema: people.pg", f"schema: people.pg\n    embed: {mode}", 1)
    )
    found = read_config(folder)
    codes = [each.code for each in found.findings if each.severity == "error"]
    assert codes == ([] if code is None else [code])
    if found.desired is not None:
        modes = [each.details.get("embed") for each in found.desired.resources.values()]
        assert mode in modes
