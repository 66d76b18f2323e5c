"""Decimals of sources: exact where a property can hold them, an error with its place elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.pipelines.ledger.run_ledger import Run
from omnigraph.pipelines.run.pipeline_run import run_pipeline
from spark.pipeline_world import defined

pytestmark = pytest.mark.usefixtures("spark")

SCHEMA = """
node Bill {
  id: String @key
  near: F64?
  whole: I64?
  digits: String?
}
"""
PIPELINE = """
graphs: {{bills: bills.omni}}
source: {{kind: files, paths: "in/*"}}
into:
  - graph: bills
    on_error: quarantine
    rejects: rejects
    max_rejected: 50%
    map:
      nodes:
        - {{type: Bill, set: {{id: id, {values}}}}}
"""
LONG = Decimal("12345678901234567890123456789012345.678")
LOW = Decimal("-12345678901234567890123456789012345.678")


def _write(folder: Path, name: str, amounts: Sequence[Decimal | None], type_: pa.DataType) -> None:
    (folder / "in").mkdir(exist_ok=True)
    ids = [f"{name}{number}" for number in range(len(amounts))]
    table = pa.table({"id": ids, "amount": pa.array(amounts, type_)})
    pq.write_table(table, folder / "in" / f"{name}.parquet")


def _run(folder: Path, values: str) -> tuple[Run, list[dict[str, Any]]]:
    with omnigraph.create(folder / "bills.omni", schema=SCHEMA) as graph:
        run = run_pipeline(defined(folder, PIPELINE.format(values=values)))
        return run, _read_bills(graph)


def _read_bills(graph: Graph) -> list[dict[str, Any]]:
    values = "$b.id as id, $b.near as near, $b.whole as whole, $b.digits as digits"
    query = f"query q() {{ match {{ $b: Bill }} return {{ {values} }} order {{ id asc }} }}"
    return graph.branch("main").query(query).to_pylist()


def test_decimals_of_parquet_keep_their_digits_as_text_and_their_value_as_numbers(
    tmp_path: Path,
) -> None:
    _write(tmp_path, "a", [Decimal("0.10"), Decimal("7.00"), None], pa.decimal128(10, 2))
    # Files may differ in precision and scale: the widest holds all.
    _write(tmp_path, "b", [Decimal("0.1005"), Decimal("8")], pa.decimal128(12, 4))
    run, bills = _run(tmp_path, "near: amount, digits: string(amount)")
    assert (run.status, run.targets[0].rejected) == ("succeeded", 0)
    found = {bill["id"]: (bill["near"], bill["digits"]) for bill in bills}
    assert found == {
        "a0": (0.1, "0.1000"),
        "a1": (7.0, "7.0000"),
        "a2": (None, None),
        "b0": (0.1005, "0.1005"),
        "b1": (8.0, "8.0000"),
    }


def test_all_digits_of_the_longest_decimals_are_kept_as_text(tmp_path: Path) -> None:
    _write(tmp_path, "a", [LONG, LOW], pa.decimal128(38, 3))
    _, bills = _run(tmp_path, "digits: string(amount)")
    assert [bill["digits"] for bill in bills] == [str(LONG), str(LOW)]


def test_a_decimal_that_is_not_an_integer_is_a_rejected_row(tmp_path: Path) -> None:
    large = Decimal("9223372036854775808")
    amounts = [Decimal("7.00"), Decimal("7.50"), Decimal("9223372036854775807"), large]
    _write(tmp_path, "a", amounts, pa.decimal128(25, 2))
    run, bills = _run(tmp_path, "whole: amount")
    assert {bill["id"]: bill["whole"] for bill in bills} == {"a0": 7, "a2": 2**63 - 1}
    (target,) = run.targets
    assert (run.status, target.rejected) == ("succeeded", 2)
    assert target.rejects is not None
    reasons = pq.read_table(target.rejects).column("reason").to_pylist()
    assert sorted(reasons) == [
        "Bill.whole: expects Int64, got 7.50",
        f"Bill.whole: expects Int64, got {large}.00",
    ]


def test_a_decimal_is_not_taken_for_a_text(tmp_path: Path) -> None:
    _write(tmp_path, "a", [Decimal("0.10")], pa.decimal128(10, 2))
    run, bills = _run(tmp_path, "digits: amount")
    (target,) = run.targets
    assert (run.status, target.error_code, bills) == ("failed", "pipeline_invalid", [])
    assert target.error is not None
    assert "Bill.digits" in target.error
    assert "decimal" in target.error.lower()


def test_decimals_of_csv_are_texts_until_they_are_cast(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text(f"id,amount\na,0.10\nb,{LONG}\nc,free\n")
    values = "digits: 'string(cast(amount AS decimal(38, 3)))', near: double(amount)"
    run, bills = _run(tmp_path, values)
    assert run.targets[0].rejected == 1
    found = [(bill["digits"], bill["near"]) for bill in bills]
    assert found == [("0.100", 0.1), (str(LONG), float(LONG))]
