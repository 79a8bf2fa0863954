"""Finding 15: audit figures read as if they were about the default release.

They were about kernels on fixed distributions and about one continuous column. Each figure says what it is about, the
figures of whole releases stand beside them, and all of them, with those of what a row keeps, are those on record.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from dipriv.auditing.results import Scope

ROOT = Path(__file__).parents[3]
PROMISE = (ROOT / "docs" / "explanation" / "promise.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")


def on_record(path: str) -> Any:
    return json.loads((ROOT / "docs" / path).read_text(encoding="utf-8"))


def row_of(start: str) -> str:
    """The last cell of the row of a table that starts like this."""
    found = re.findall(rf"^\| {re.escape(start)}[^\n]*$", PROMISE, flags=re.MULTILINE)
    assert len(found) == 1, start
    return str(found[0].strip("| ").rpartition("|")[2].strip())


def test_the_figures_of_the_kernels_are_those_on_record() -> None:
    bounds = on_record("audit/bounds.json")
    parts = [one["bound"] / one["epsilon"] for one in bounds["one column"]]
    assert row_of("the kernels alone: noise on one value of one of seven fixed distributions") == (
        f"{min(parts):.2f} to {max(parts):.2f}"
    )
    assert len({one["kind"] for one in bounds["one column"]}) == 7
    assert f"({bounds['draws']:,} draws, 95%)" in PROMISE


def test_the_figures_of_several_columns_are_those_on_record() -> None:
    rows = on_record("audit/rows.json")
    parts = [one["bound"] / one["epsilon"] for one in rows["several columns"]]
    assert row_of("the kernels alone: noise on rows of 2, 3 and 10 columns") == f"{min(parts):.2f} to {max(parts):.2f}"
    assert {one["kind"].partition(" ")[0] for one in rows["several columns"]} == {"2", "3", "10"}
    assert f"({rows['draws']:,} draws, 95%; {rows['date']})" in PROMISE


def test_the_repeated_audits_say_that_they_are_about_one_column() -> None:
    repeated = on_record("audit/bounds.json")["repeated"]
    audits, above = (sum(one[key] for one in repeated) for key in ("audits", "above"))
    assert row_of(f"the same audit of one continuous column {audits:,} times") == f"above the claim {above} times"


def test_whole_releases_with_the_private_reference_stand_beside_them() -> None:
    canaries = [one for one in on_record("audit/canaries.json")["canaries"] if "private reference" in one["way"]]
    lower = [one["lower"] for one in canaries]
    said = row_of("whole releases of one or two columns with the private reference")
    assert said == f"{min(lower):.2f} to {max(lower):.2f}"


def test_the_readme_has_the_same_figures() -> None:
    bounds, rows = (on_record(f"audit/{name}.json") for name in ("bounds", "rows"))
    every = [*bounds["one column"], *bounds["three columns"], *rows["several columns"]]
    parts = [one["bound"] / one["epsilon"] for one in every]
    kernels = f"{min(parts):.2f} to {max(parts):.2f}"
    releases = row_of("whole releases of one or two columns with the private reference")
    said = " ".join(README.split())
    assert f"{kernels} of the claim for the kernels alone" in said
    assert f"{releases} for whole releases of one or two columns" in said


@pytest.mark.parametrize("part", ["audit/bounds.json", "private-reference.json"])
def test_date_and_machine_are_on_record(part: str) -> None:
    record = on_record(part)
    found = record.get("rows", record)
    assert found["date"] in PROMISE
    assert f"{found['machine']['cores']} cores, {found['machine']['memory in GB']:.0f} GB memory" in PROMISE
    assert found["seeds"]


def test_what_a_row_keeps_is_measured_on_default_releases() -> None:
    rows = on_record("private-reference.json")["rows"]
    one, ten = (fmean(found["correlation"]) for found in rows["sizes"].values())
    assert row_of("1 normal column of 100,000 rows") == f"{one:.2f}"
    assert row_of("10 normal columns of 1,000,000 rows") == f"{ten:.3f}"
    for found in rows["tables"].values():
        title = found["title"].partition(",")[0]
        kept = fmean(found["mean"])
        said = row_of(f"{title}: {found['rows']:,} rows, {found['columns']} columns")
        assert said == ("below 0.001" if kept < 0.001 else f"{kept:.3f}")
    assert "as good as synthetic data row by row" in " ".join(PROMISE.split())


def test_the_audit_page_says_what_each_figure_is_about() -> None:
    page = " ".join((ROOT / "docs" / "audit.md").read_text(encoding="utf-8").split())
    assert "The figures on this page are about different things." in page
    assert "These bounds are about the kernel" in page
    assert len(set(Scope)) == len(Scope) > 4
