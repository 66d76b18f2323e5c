"""Every example of the guide that uses Spark runs on a cluster of two workers, with one result."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from guards.test_docs import SPARK_PAGES
from spark.followed_pages import follow_page
from spark.standalone import Cluster, Driver, running

pytestmark = pytest.mark.timeout(1800)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running(tmp_path_factory.mktemp("cluster"), workers=2) as started:
        yield started


@pytest.fixture(scope="module")
def driver(cluster: Cluster) -> Driver:
    """One process, whose session all pages use."""
    return cluster.driver(SPARK_MASTER_URL=cluster.url, RUNTIME__DLTHUB_TELEMETRY="false")


@pytest.mark.parametrize("page", sorted(SPARK_PAGES))
def test_a_page_does_on_a_cluster_what_it_says(
    page: str, cluster: Cluster, driver: Driver, tmp_path: Path
) -> None:
    found = driver.called(follow_page, page, str(tmp_path))
    assert found == {"master": cluster.url, "executors": 2, "wrong": []}
