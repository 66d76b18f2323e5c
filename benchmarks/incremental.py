"""An incremental run beside the first one: `python benchmarks/incremental.py [ROWS] [CHANGED]`.

A table of PostgreSQL is loaded, some of its rows are changed, and the pipeline is run again, three
times, and once more without any change. Bytes are the pages of the table and of its indexes that
the server read for the run.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import adbc_driver_postgresql.dbapi as postgres

import omnigraph
from omnigraph.pipelines.config.definition_reader import read_pipeline
from omnigraph.pipelines.ledger.run_ledger import Run
from omnigraph.pipelines.run.pipeline_run import RunOptions, run_pipeline
from omnigraph.spark.spark_session import get_session

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from spark import postgres_server

ROWS = int(sys.argv[1]) if len(sys.argv) > 1 else 5_000_000
CHANGED = int(sys.argv[2]) if len(sys.argv) > 2 else 1_000
ROUNDS = 3
SCHEMA = """
node Person {
  number: I64 @key
  name: String
  city: String
  score: F64
}
"""
TEXT = """
graphs: {people: people.omni}
source:
  kind: postgres
  url: ${PEOPLE_URL}
  table: people
  incremental: {cursor: changed}
into:
  - graph: people
    map:
      nodes:
        - {type: Person, set: {number: number, name: name, city: city, score: score}}
"""
TABLE = f"""
CREATE TABLE people AS SELECT n AS number, 'person ' || md5(n::text) AS name,
  'city ' || n % 1000 AS city, n * 0.5::float8 AS score, n AS changed
  FROM generate_series(1, {ROWS}) AS n;
ALTER TABLE people ADD PRIMARY KEY (number);
CREATE INDEX ON people (changed);
CREATE SEQUENCE changes START {ROWS + 1};
"""
# Spread over the whole table.
CHANGE = f"""
UPDATE people SET score = score + 1, changed = nextval('changes')
  WHERE number % {ROWS // CHANGED} = %s
"""
PAGES = """
SELECT (heap_blks_read + heap_blks_hit + idx_blks_read + idx_blks_hit)
    * current_setting('block_size')::int8
  FROM pg_statio_user_tables WHERE relname = 'people'
"""


@dataclass(frozen=True, slots=True)
class Measured:
    """What a run cost: seconds, and bytes."""

    run: Run
    seconds: float
    size: int


def main() -> None:
    """Measure, and print a line for each run and the two ratios."""
    with tempfile.TemporaryDirectory() as place, _running_server(Path(place)) as url:
        folder = Path(place)
        _execute(url, TABLE)
        _execute(url, "VACUUM ANALYZE people")
        omnigraph.create(folder / "people.omni", schema=SCHEMA).close()
        (folder / "people.yaml").write_text(TEXT)
        _warm_spark()
        first = _measure(folder, url)
        _print("first", first)
        later = []
        for number in range(ROUNDS):
            _execute(url, CHANGE.replace("%s", str(number)))
            later.append(_measure(folder, url))
            _print(f"{CHANGED} changed", later[-1])
        idle = _measure(folder, url)
        _print("unchanged", idle)
        seconds = statistics.median(each.seconds for each in later)
        size = statistics.median(each.size for each in later)
        sys.stdout.write(
            f"bytes {size / first.size:.2%} of the first run (bound 2%), "
            f"time 1/{first.seconds / seconds:.1f} (bound 1/20), "
            f"unchanged: {idle.run.targets[0].status}\n"
        )


def _running_server(folder: Path) -> AbstractContextManager[str]:
    return postgres_server.running(folder)


def _warm_spark() -> None:
    """Start Spark and its workers, whose time is not that of a run."""
    get_session().range(0, 4, 1, 4).mapInArrow(_pass_on, "id long").toArrow()


def _pass_on(batches: object) -> object:
    return batches


def _execute(url: str, text: str) -> None:
    with postgres.connect(url, autocommit=True) as connection, connection.cursor() as cursor:
        for statement in filter(str.strip, text.split(";")):
            cursor.execute(statement)


def _read_pages(url: str) -> int:
    # What a backend read is counted when it ends, or is asked for it.
    time.sleep(1.5)
    with postgres.connect(url) as connection, connection.cursor() as cursor:
        cursor.execute(PAGES)
        ((found,),) = cursor.fetchall()
    return int(found)


def _measure(folder: Path, url: str) -> Measured:
    options = RunOptions(environment={"PEOPLE_URL": url})
    before = _read_pages(url)
    start = time.monotonic()
    run = run_pipeline(read_pipeline(folder / "people.yaml"), options)
    seconds = time.monotonic() - start
    assert run.status == "succeeded", run.targets
    return Measured(run, seconds, _read_pages(url) - before)


def _print(name: str, found: Measured) -> None:
    target = found.run.targets[0]
    sys.stdout.write(
        f"{name:12} {found.seconds:7.2f} s  {found.size / 1e6:9.1f} MB  "
        f"{target.status}, {target.rows_read} read, {target.written} written\n"
    )
    sys.stdout.flush()


if __name__ == "__main__":
    main()
