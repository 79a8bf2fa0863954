"""Finding 14: a CSV file without a header published its first person as the names of the columns."""

from __future__ import annotations

from pathlib import Path

import pytest

import dipriv
from dipriv.errors import InputError
from tests.unit.refusal import SECRET, refused

PEOPLE = [f"{name} {SECRET},{city},{ill}" for name, city, ill in zip("ABCDEF", "XYXYXY", "pqrpqr", strict=True)] * 20


def test_a_first_line_that_is_a_persons_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("\n".join(PEOPLE) + "\n", encoding="utf-8")
    words = ("the first line has no names of columns", "Put a line with the columns' names on top")
    refused(InputError, *words, call=lambda: dipriv.privatize(file, 1.0))
    file.write_text("name,city,ill\n" + "\n".join(PEOPLE) + "\n", encoding="utf-8")  # a control
    assert dipriv.privatize(file, 1.0).data.to_table().column_names == ["name", "city", "ill"]


def test_nobody_alone_blocks_a_release_by_repeating_the_names(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    for odd in (["name,city,ill"], ["x,city,p", "y,city,p"]):
        file.write_text("\n".join(["name,city,ill", *PEOPLE, *odd]) + "\n", encoding="utf-8")
        assert dipriv.privatize(file, 1.0).data.to_table().num_rows == len(PEOPLE) + len(odd)
    file.write_text("name,city,ill\n" * 3 + "\n".join(PEOPLE) + "\n", encoding="utf-8")  # a control
    refused(InputError, "in 3 of 3 columns", call=lambda: dipriv.privatize(file, 1.0))


def test_a_table_without_a_header_is_refused_though_a_column_has_no_value_twice(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    towns, illnesses = ("Boston", "Salem", "Lowell"), ("diabetes", "asthma")
    lines = [f"{SECRET} {n},{towns[n % 3]},{illnesses[n % 2]}" for n in range(60)]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    refused(InputError, "in 2 of 3 columns", call=lambda: dipriv.privatize(file, 1.0))


@pytest.mark.parametrize("first", ["2020-01-01,b", "12,b", ",b", "31/12/2020,b", "true,b", "02139,b", "inf,b"])
def test_first_lines_with_values_are_refused(first: str, tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text(first + "\n" + "p,q\n" * 50, encoding="utf-8")
    refused(InputError, "the first line has column", call=lambda: dipriv.privatize(file, 1.0))


def test_names_of_columns_that_are_kept_are_looked_at_too(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("\n".join(PEOPLE) + "\n", encoding="utf-8")
    with pytest.raises(InputError, match="no names of columns"), pytest.warns(dipriv.errors.PrivacyWarning):
        dipriv.privatize(file, 1.0, keep=["X"])
