"""Pages of measurements are what the templates make of the numbers on record."""

from __future__ import annotations

import pytest

from research import pages

EXPERIMENTS = sorted(file.stem for file in (pages.DOCS / "reproduction").glob("*.json"))


@pytest.mark.parametrize("name", [*pages.PAGES, *(f"reproduction/{name}" for name in EXPERIMENTS)])
def test_a_page_is_rendered_from_its_record(name: str) -> None:
    made = pages.render(name) if name in pages.PAGES else pages.fill("experiment", pages.record(name))
    assert (pages.DOCS / f"{name}.md").read_text(encoding="utf-8") == made


@pytest.mark.parametrize(
    ("value", "sd", "text"),
    [
        (0.4996, 0.02, "0.500 (0.020)"),
        (12.345, 1e-5, "12.35 (1e-05)"),
        (1234.56, 7.0, "1234.6 (7.0)"),
        ("inf", 0.0, "infinite"),
    ],
)
def test_numbers_have_digits_by_their_size(value: float | str, sd: float, text: str) -> None:
    assert pages.with_sd(value, sd) == text
