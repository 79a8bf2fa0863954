"""The gallery: what is on record is the code of the scripts, and the scripts run."""

from __future__ import annotations

import re

import pytest

from examples.gallery import NAMES, Cell, cells, code_of, executed, missing_data
from tests.docs.test_documents import ROOT


@pytest.mark.parametrize("name", NAMES)
def test_the_page_has_the_code_and_the_text_of_the_script(name: str) -> None:
    page = (ROOT / "docs" / "gallery" / f"{name}.md").read_text(encoding="utf-8")
    assert code_of(page) == [cell.content for cell in cells(name) if not cell.is_text]
    assert all(cell.content in page for cell in cells(name) if cell.is_text)
    assert re.search(r"Made by `python -m examples.gallery \w+` .* \d{4}-\d\d-\d\d, dipriv \d", page)


@pytest.mark.parametrize("name", NAMES)
def test_every_release_of_a_script_has_a_seed(name: str) -> None:
    """What is on record can be made again."""
    code = "".join(cell.content for cell in cells(name) if not cell.is_text)
    assert 0 < code.count("privatize(") == code.count("seed=")


def test_cells_are_text_and_code() -> None:
    first, second, *_ = cells("survey")
    assert first.is_text
    assert first.content.startswith("# A survey")
    assert second == Cell(False, second.content)
    assert "# %%" not in second.content


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_scripts_run(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("statsmodels", reason="the demo's table is in statsmodels")
    if reason := missing_data(name):
        pytest.skip(reason)
    done = list(executed(name))
    assert len(done) == len(cells(name))
    assert any("95% interval" in printed or "intervals hold" in printed for _, printed in done)
