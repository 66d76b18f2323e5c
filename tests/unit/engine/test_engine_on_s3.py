"""The engine on an object store with real conditional puts."""

from __future__ import annotations

import pytest

import omnigraph
from omnigraph import errors
from stores import S3Server
from unit.engine.company import CHANGES, SCHEMA, ages, company, person


def test_a_graph_lives_on_s3(s3: S3Server) -> None:
    uri = f"s3://{s3.new_bucket()}/graphs/org"
    with pytest.raises(errors.GraphNotFoundError):
        omnigraph.open(uri, storage_options=s3.options)
    graph = company(uri, storage_options=s3.options, actor="ada")
    review = graph.create_branch("review")
    review.load([person("Cyd", 29)], mode="append")
    review.mutate(CHANGES, name="leave", params={"who": "Bob"})
    graph.close()
    with omnigraph.connect(uri, storage_options=s3.options) as again:
        assert ages(again.branch()) == {"Ada": 36, "Bob": 41}
        assert ages(again.branch("review")) == {"Ada": 36, "Cyd": 29}
        assert [commit.actor for commit in again.branch("review").commits()] == ["ada"] * 4
        with pytest.raises(errors.GraphExistsError):
            omnigraph.create(uri, schema=SCHEMA, storage_options=s3.options)
