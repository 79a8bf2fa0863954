"""The report in a real browser: no complaint on its console, no request, and nothing wider than a phone."""

from __future__ import annotations

import html
import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest

import dipriv
from dipriv.auditing.intervals import Estimate, Rate
from dipriv.auditing.results import AttackResult, Audit, Bound
from dipriv.report import compare, write_report
from dipriv.utility.plan_html import page as plan_page
from tests.unit.report.test_report import COLUMN, LABEL, survey

pytestmark = pytest.mark.slow
PHONE, DESKTOP = 390, 1200
OWN_HOSTS = ("google.com", "googleapis.com", "gvt1.com")
"""Where Chromium asks for its own sake, whatever it shows."""

_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--hide-scrollbars",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-pings",
    "--allow-file-access-from-files",
    "--enable-logging=stderr",
)
_MEASURE = """<!DOCTYPE html><body style="margin:0">{frames}
<script>
for (const frame of document.querySelectorAll("iframe")) frame.onload = function () {{
  const page = this.contentDocument;
  this.title = page.documentElement.scrollWidth + ": " + page.querySelector("header").innerText;
}};
</script>"""
_CUT = """<!DOCTYPE html><meta charset="utf-8"><body style="margin:0">{frames}
<script>
for (const frame of document.querySelectorAll("iframe")) frame.onload = function () {{
  const tables = [...this.contentDocument.querySelectorAll(".scroll")];
  const cut = tables.filter(table => table.scrollWidth > table.clientWidth);
  this.title = "cut: " + cut.map(table => table.getAttribute("aria-label"));
}};
</script>"""
_FRAME = '<iframe src="{source}" style="width:{width}px; height:3000px; border:0"></iframe>'


@dataclass(frozen=True)
class Visit:
    """What a browser made of a page."""

    dom: str
    console: list[str]
    hosts: set[str]


@pytest.fixture(scope="module")
def chromium() -> str:
    for name in ("/usr/bin/chromium", "chromium", "chromium-browser", "google-chrome"):
        if found := shutil.which(name):
            return found
    pytest.skip("no Chromium on this machine: install the system's package chromium to look at the report")


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("matplotlib")
    pytest.importorskip("jinja2")
    rng = np.random.default_rng(30)
    table = survey(31, 800)[[COLUMN, "since", "town", "works"]].assign(heavy=rng.pareto(1.0, 800))
    table["a_long_name_without_a_space" * 5] = rng.integers(0, 3, 800)
    release = dipriv.privatize(table, 2.0, reference="holdout", seed=32)
    path = tmp_path_factory.mktemp("report") / "report.html"
    comparison = compare(
        table,
        release.data,
        schema=release.schema,
        rows=release.secrets.row_positions,
        guarantee=release.guarantee,
        target="works",
    )
    write_report(comparison, path)
    return path


def visit(chromium: str, page: Path, folder: Path, *options: str) -> Visit:
    """Open a local page and wait until it is loaded."""
    log = folder / "net.json"
    ran = subprocess.run(
        [
            chromium,
            *_FLAGS,
            *options,
            f"--user-data-dir={folder / 'profile'}",
            f"--log-net-log={log}",
            "--dump-dom",
            page.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if ran.returncode != 0 or not log.exists():
        pytest.skip(f"Chromium does not run here (exit code {ran.returncode})")
    asked = {
        event["params"]["url"] for event in json.loads(log.read_text())["events"] if "url" in event.get("params", {})
    }
    hosts = {urlsplit(url).hostname or "" for url in asked if url.startswith(("http", "ws", "ftp"))}
    return Visit(
        ran.stdout,
        [line for line in ran.stderr.splitlines() if ":CONSOLE" in line],
        {host for host in hosts if not host.endswith(OWN_HOSTS)},
    )


def test_the_page_loads_in_silence_and_is_not_blank(chromium: str, report: Path, tmp_path: Path) -> None:
    picture = tmp_path / "page.png"
    found = visit(chromium, report, tmp_path, "--window-size=500,2000", f"--screenshot={picture}")
    assert not found.console
    assert not found.hosts
    assert "Original and release" in found.dom
    assert found.dom.count("<svg") == report.read_text(encoding="utf-8").count("<svg")
    assert "<script" not in found.dom
    assert html.escape(COLUMN, quote=False) in found.dom
    assert LABEL not in found.dom
    image = pytest.importorskip("PIL.Image").open(picture).convert("L")
    shades = np.bincount(np.asarray(image).ravel()) / (image.width * image.height)
    assert shades.max() < 0.98  # paper
    assert np.count_nonzero(shades) > 50  # text and charts


def test_tables_of_an_audit_fit_into_a_desktop_and_others_say_that_they_scroll(chromium: str, tmp_path: Path) -> None:
    """Long sentences wrap; where a table is wider than a phone, its right edge is dark."""
    long = "a high rank against a low rank of the columns that differ most, by the sums of all of their cells"
    rate, gain = Rate(50, 100), Estimate(0.01, -0.1, 0.1)
    audit = Audit(
        1.0,
        "Guarantee: ε = 1.",
        100,
        tuple(Bound("release, distinct canaries", 1.0, 0.1, 0.999, 400_000, long, 1e-9) for _ in range(3)),
        attacks=(AttackResult("same row of 2, reference", long * 2, rate, rate, gain, 0.1, 0.1),),
    )
    table = survey(33, 200)[["age", "town"]]
    page, cut = tmp_path / "audit.html", tmp_path / "cut.html"
    write_report(compare(table, table, audit=audit), page)
    text = page.read_text(encoding="utf-8")
    assert "<title>Audit of a release</title>" in text
    assert "no-repeat local" in text  # covers the dark edge when the table is scrolled to its end
    cut.write_text(text.replace("white-space: normal;", ""), encoding="utf-8")  # control
    frames = "".join(_FRAME.format(source=one.as_uri(), width=1280) for one in (page, cut))
    window = tmp_path / "window.html"
    window.write_text(_CUT.format(frames=frames), encoding="utf-8")
    dom = visit(chromium, window, tmp_path).dom
    assert 'title="cut: "' in dom
    assert 'title="cut: Bounds on ε,Attacks"' in dom


def test_control_a_page_that_loads_or_complains_is_noticed(chromium: str, report: Path, tmp_path: Path) -> None:
    text = report.read_text(encoding="utf-8")
    policy = text[text.index("<meta http-equiv") : text.index("<link rel")]
    loads = text.replace("</main>", '<img src="http://dipriv.invalid/x.png"></main>')
    loud = tmp_path / "loud.html"
    loud.write_text(loads, encoding="utf-8")
    forbidden = visit(chromium, loud, tmp_path)
    assert not forbidden.hosts  # the page's own policy forbids all loading, and the console says so
    assert forbidden.console
    loud.write_text(loads.replace(policy, ""), encoding="utf-8")
    assert visit(chromium, loud, tmp_path).hosts == {"dipriv.invalid"}


def test_pages_of_sheets_and_plans_are_no_wider_than_a_phone(chromium: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(34)
    table = survey(35, 800)[[COLUMN, "town"]].assign(**{"a_long_name_without_a_space" * 3: rng.integers(0, 3, 800)})
    dipriv.privatize(table, 1.0, seed=36).write(tmp_path / "out.csv")
    sheet, plan, wide = tmp_path / "out.csv.sheet.html", tmp_path / "plan.html", tmp_path / "wide.html"
    plan.write_text(plan_page(dipriv.plan(table)), encoding="utf-8")
    text = sheet.read_text(encoding="utf-8")
    wide.write_text(text.replace("<body>", '<body><div style="width:500px">.</div>'), encoding="utf-8")  # control
    frames = "".join(_FRAME.format(source=page.as_uri(), width=PHONE) for page in (sheet, plan, wide))
    window = tmp_path / "window.html"
    window.write_text(_MEASURE.format(frames=frames).replace('"header"', '"h1"'), encoding="utf-8")
    found = visit(chromium, window, tmp_path)
    assert not found.console
    assert found.dom.count(f'title="{PHONE}: ') == 2
    assert found.dom.count("<iframe") == 3


def test_the_page_is_no_wider_than_its_window(chromium: str, report: Path, tmp_path: Path) -> None:
    wide = tmp_path / "wide.html"  # control
    text = report.read_text(encoding="utf-8")
    wide.write_text(text.replace("<main>", '<main><div style="width:1300px">.</div>'), encoding="utf-8")
    shown = [(report, PHONE), (report, DESKTOP), (wide, PHONE)]
    frames = "".join(_FRAME.format(source=page.as_uri(), width=width) for page, width in shown)
    window = tmp_path / "window.html"
    window.write_text(_MEASURE.format(frames=frames), encoding="utf-8")
    dom = visit(chromium, window, tmp_path).dom
    assert f'title="{PHONE}: Contains statistics' in dom
    assert f'title="{DESKTOP}: Contains statistics' in dom
    assert dom.count(": Contains statistics of the private data; do not publish.") == len(shown)
    assert dom.count(f'title="{PHONE}: ') == 1
