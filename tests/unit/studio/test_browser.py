"""The studio in a real browser, driven as a person would: Chromium and chromedriver of the system, by Selenium."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dipriv
from dipriv.ledger import Ledger

webdriver: Any = pytest.importorskip("selenium.webdriver", reason="Selenium, which drives the browser, is missing")
from selenium.webdriver.common.keys import Keys  # noqa: E402

PATIENCE = 90.0
"""Seconds to wait for a page; the first release compiles its loops."""
PHONE, DESKTOP = 400, 1280
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)
ROOT = Path(__file__).parents[3]
MARKER = "zq7-marker-xv"


@dataclass
class Studio:
    """A studio in a process of its own."""

    folder: Path
    arguments: tuple[str, ...] = ()
    process: Any = field(default=None)
    link: str = ""
    said: str = ""

    def start(self) -> Studio:
        environment = os.environ | {
            "XDG_CACHE_HOME": str(self.folder / "cache"),
            "DIPRIV_LEDGER": str(self.folder / "ledger.db"),
            "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
        }
        self.process = subprocess.Popen(
            [sys.executable, "-m", "dipriv", "studio", "--no-browser", *self.arguments],
            cwd=self.folder / "mine",
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            # where tests run in the background, processes ignore Ctrl-C
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
        )
        while not (found := re.search(r"http://\S+", self.said)):
            line = self.process.stdout.readline()
            assert line, self.said
            self.said += line
        self.link = found[0]
        return self

    def end(self, number: int = signal.SIGINT) -> int:
        """End it; what it printed is in `said`."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        if not self.process.stdout.closed:
            self.said += self.process.communicate(timeout=60)[0]
        return int(self.process.returncode)

    @property
    def private_files(self) -> list[Path]:
        return [path for path in (self.folder / "cache" / "dipriv").rglob("*") if path.is_file()]


class Page:
    """A window of the browser, by what a person sees in it."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def open(self, link: str, title: str) -> Page:
        self.driver.get(link)
        return self.wait(title)

    def wait(self, title: str) -> Page:
        """Until the heading of the page begins so."""
        return self.until(lambda: self.title.startswith(title), title)

    def until(self, holds: Callable[[], Any], what: str = "") -> Page:
        deadline = time.monotonic() + PATIENCE
        while not holds():
            assert time.monotonic() < deadline, (what, self.title, self.text[:2000])
            time.sleep(0.05)
        return self

    @property
    def title(self) -> str:
        return str(self.run("return document.querySelector('h1')?.textContent ?? ''"))

    @property
    def text(self) -> str:
        return str(self.run("return document.body.innerText"))

    def run(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def find(self, css: str) -> Any:
        return self.driver.find_element("css selector", css)

    def click(self, css: str) -> Page:
        self.find(css).click()
        return self

    def press(self, label: str) -> Page:
        """Click the button of this text."""
        for button in self.driver.find_elements("tag name", "button"):
            if button.text.startswith(label) and button.is_displayed():
                button.click()
                return self
        raise AssertionError((label, self.text[:2000]))

    def write(self, css: str, text: str) -> Page:
        found = self.find(css)
        found.clear()
        found.send_keys(text)
        return self

    def choose(self, css: str, value: str) -> Page:
        return self.click(f'{css} option[value="{value}"]')

    def to_release(self, epsilon: str = "") -> Page:
        """From the table to the release."""
        self.press("Continue").wait("What will").press("Continue").wait("How much")
        if epsilon:
            self.write("#epsilon", epsilon)
        return self.press("Continue").wait("Release")

    @property
    def complaints(self) -> list[str]:
        """What the browser's console says, such as violations of the content security policy."""
        return [entry["message"] for entry in self.driver.get_log("browser")]


@contextmanager
def browsing(folder: Path, width: int = DESKTOP, *, dark: bool = False) -> Iterator[Page]:
    options = webdriver.ChromeOptions()
    options.binary_location = _program("chromium", "chromium-browser", "google-chrome")
    for flag in (*FLAGS, f"--user-data-dir={folder / 'profile'}", f"--window-size={width},900"):
        options.add_argument(flag)
    options.add_experimental_option("prefs", {"download.default_directory": str(folder / "downloads")})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.ChromeService(executable_path=_program("chromedriver"))
    driver = webdriver.Chrome(options=options, service=service)
    try:
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width == PHONE}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        yield Page(driver)
    finally:
        driver.quit()


def _program(*names: str) -> str:
    for name in names:
        if found := shutil.which(name):
            return found
    pytest.skip(f"no {names[0]} on this machine: install the system's packages chromium and chromium-driver")


def write_table(path: Path, rows: int = 600, seed: int = 50) -> None:
    rng = np.random.default_rng(seed)
    age, town = rng.integers(18, 80, rows), rng.choice(["north", "south", "west"], rows)
    lines = [f"{MARKER}-{row},{age[row]},{town[row]},{age[row] // 10 + rng.integers(0, 3)}" for row in range(rows)]
    path.write_text("id,age,town,visits\n" + "\n".join(lines) + "\n")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mine").mkdir()
    write_table(tmp_path / "mine" / "people.csv")
    write_table(tmp_path / "elsewhere.csv")
    Ledger.create(tmp_path / "ledger.db").close()
    Ledger.create(tmp_path / "other.db").close()
    return tmp_path


@pytest.fixture
def started(folder: Path) -> Iterator[Studio]:
    studio = Studio(folder, ("people.csv",)).start()
    yield studio
    studio.end()
    assert MARKER not in studio.said


@pytest.fixture
def page(folder: Path) -> Iterator[Page]:
    with browsing(folder) as found:
        yield found


def test_the_link_opens_the_table_and_nothing_without_it(page: Page, started: Studio) -> None:
    page.open(started.link, "people.csv")
    assert "600 rows, 4 columns" in page.text
    assert "token" not in page.driver.current_url
    assert page.find(".sketch").is_displayed()
    assert "an identifier" in page.text
    page.choose("#use-0", "drop").press("Continue").wait("What will")
    page.driver.back()
    page.wait("people.csv")
    assert page.find("#use-0").get_attribute("value") == "drop"
    assert page.complaints == []
    page.driver.switch_to.new_window("tab")
    page.open(started.link.partition("#")[0], "dipriv studio")
    assert "Open the link that the terminal shows" in page.text


@pytest.mark.slow
def test_from_upload_to_download_as_on_the_command_line(page: Page, folder: Path) -> None:
    studio = Studio(folder).start()
    try:
        page.open(studio.link, "Choose a table")
        page.find("#upload").send_keys(str(folder / "elsewhere.csv"))
        page.wait("elsewhere.csv").choose("#use-0", "drop")
        for summary in page.driver.find_elements("css selector", "summary")[1:3]:
            summary.click()
        page.choose("#kind-1", "discrete").write("#step-1", "1")
        page.click('button[data-fill="2"]')
        assert page.find("#kind-2").get_attribute("value") == "categorical"
        page.write("#values-2", "north\nsouth\nwest\neast")
        page.press("Continue").wait("What will").choose("#target", "visits").press("Continue").wait("How much")
        slider, before = page.find("#slider"), page.find("#epsilon").get_attribute("value")
        slider.send_keys(Keys.HOME, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
        assert before != "2"
        assert page.find("#epsilon").get_attribute("value") == "2"
        assert slider.get_attribute("aria-valuetext") == "ε = 2"
        assert page.find(".panel:not([hidden]) h2").text.startswith("ε = 2")
        drag(page, 0.99)
        assert page.find("#epsilon").get_attribute("value") == "10"
        page.write("#epsilon", "2").press("Continue").wait("Release")
        page.click("form details summary").write("#seed", "7")
        page.press("Release: spend").wait("Released")
        assert "NOT PRIVATE" in page.text
        assert "Verdict: " in page.text
        assert "Guarantee: ε = 2" in page.text
        downloads = folder / "downloads"
        for label, name in [
            ("The released table", "elsewhere-released.csv"),
            ("The data sheet to read", "elsewhere-released.csv.sheet.html"),
            ("The report", "report-private.html"),
            ("The schema", "elsewhere-schema.toml"),
        ]:
            page.press(label)
            page.until((downloads / name).exists, name)
        assert "Original and release" in (downloads / "report-private.html").read_text()
        command = page.find("#done-command").text
        shutil.copy(downloads / "elsewhere-schema.toml", folder)
        environment = os.environ | {"DIPRIV_LEDGER": str(folder / "other.db")}
        arguments = [sys.executable, "-m", *shlex.split(command)]
        subprocess.run(arguments, cwd=folder, env=environment, check=True, capture_output=True)
        released = (downloads / "elsewhere-released.csv").read_bytes()
        assert released == (folder / "elsewhere-released.csv").read_bytes()
        assert released == (folder / "mine" / "elsewhere-released.csv").read_bytes()
        page.click('.steps a[href="#ledger"]').wait("Ledger")
        assert "done, NOT PRIVATE: seeded" in page.text
        assert page.complaints == []
        assert {path.stat().st_mode & 0o077 for path in studio.private_files if path.name != "lock"} == {0}
    finally:
        assert studio.end() == 0
    assert [path.name for path in studio.private_files] == ["lock"]
    assert MARKER not in studio.said


def drag(page: Page, to: float) -> None:
    """Drag along the picture of the plan to a part of its width."""
    picture = page.find("#plan")
    page.run("arguments[0].scrollIntoView({block: 'center'})", picture)
    offset = int((to - 0.5) * picture.size["width"])
    webdriver.ActionChains(page.driver).move_to_element(picture).click_and_hold().move_by_offset(
        offset, 0
    ).release().perform()


@pytest.mark.slow
def test_wrong_files_wrong_fields_and_an_exhausted_budget(page: Page, started: Studio, folder: Path) -> None:
    page.open(started.link, "people.csv").press("Choose another").wait("Choose a table")
    page.write("#path", "../elsewhere.csv").press("Open the file").until(lambda: "is outside" in page.text)
    page.write("#path", "none.csv").press("Open the file").until(lambda: "is not a file" in page.text)
    (folder / "broken.csv").write_text("a,b\n1,2\n3\n")
    page.find("#upload").send_keys(str(folder / "broken.csv"))
    page.until(lambda: "line 3" in page.text and page.title == "Choose a table")
    page.write("#path", "people.csv").press("Open the file").wait("people.csv")
    page.driver.find_elements("tag name", "summary")[1].click()
    page.write("#values-1", "18\n19").press("Continue").until(lambda: "choose a kind" in page.text)
    assert page.find("#values-1").get_attribute("value") == "18\n19"  # what was filled in stays
    page.choose("#kind-1", "discrete").choose("#use-0", "drop").to_release("11")
    assert "protects little" in page.text
    page.press("Release: spend").until(lambda: "only 10.0 is left" in page.text)
    assert not (folder / "mine" / "people-released.csv").exists()
    assert page.complaints == [] or all("422" in one for one in page.complaints)


@pytest.mark.slow
def test_two_tabs_do_not_mix_and_reloading_in_the_middle_changes_nothing(
    page: Page, started: Studio, folder: Path
) -> None:
    page.open(started.link, "people.csv").choose("#use-0", "drop")
    page.press("Continue").wait("What will")
    first = page.driver.current_window_handle
    page.driver.switch_to.new_window("tab")
    page.open(started.link, "people.csv")
    assert page.find("#use-0").get_attribute("value") == "release"
    page.press("Choose another").wait("Choose a table")
    page.driver.switch_to.window(first)
    page.driver.refresh()
    page.wait("What will").press("Continue").wait("How much").write("#epsilon", "1").press("Continue").wait("Release")
    page.press("Release: spend")
    page.driver.refresh()
    page.wait("Released")
    page.driver.refresh()
    page.wait("Released")
    with Ledger.open(folder / "ledger.db") as ledger:
        assert [dataset.releases for dataset in ledger.datasets()] == [1]
    # a copy of the tab has its state; what it changes makes the form of the first one out of date
    kept = page.run("return [sessionStorage.token, sessionStorage.tab]")
    page.driver.switch_to.new_window("tab")
    page.open(started.link, "people.csv")
    page.run("[sessionStorage.token, sessionStorage.tab] = arguments[0]", kept)
    page.open(started.link.partition("#")[0], "Released").press("Release again").wait("Releasing").wait("Released")
    page.driver.switch_to.window(first)
    page.press("Release again").until(lambda: "Nothing was done" in page.text)
    with Ledger.open(folder / "ledger.db") as ledger:
        assert [dataset.releases for dataset in ledger.datasets()] == [2]


@pytest.mark.slow
def test_stopping_a_release_says_what_was_spent(page: Page, started: Studio, folder: Path) -> None:
    write_table(folder / "mine" / "large.csv", 1_200_000)
    page.open(started.link, "people.csv").press("Choose another").wait("Choose a table")
    page.write("#path", "large.csv").press("Open the file").wait("large.csv").choose("#use-0", "drop")
    page.to_release("1").press("Release: spend").wait("Releasing")
    page.until(lambda: page.find("#what").text in ("learning", "releasing", "comparing"))
    page.press("Stop").wait("Release")
    with Ledger.open(folder / "ledger.db") as ledger:
        (dataset,) = ledger.datasets()
    assert "The work was stopped." in page.text
    assert "are spent" in page.text
    assert dataset.spent == 1.0
    assert not list((folder / "mine").glob(".*part"))
    page.press("Release: spend").wait("Releasing")
    page.until(lambda: page.find("#what").text in ("reading", "learning", "releasing"))
    page.press("Stop").wait("Release")
    with Ledger.open(folder / "ledger.db") as ledger:
        spent = ledger.datasets()[0].spent  # a fast machine has read the rows before it is stopped
    assert spent in (1.0, 2.0)
    assert "spent" in page.text
    page.press("Release: spend").wait("Releasing")
    page.until(lambda: page.find("#what").text in ("learning", "releasing"))
    assert started.end() == 0
    assert f"release {spent + 1:.0f} of data set 'large'" in started.said
    with Ledger.open(folder / "ledger.db") as ledger:
        assert ledger.datasets()[0].spent == spent + 1
    assert not list((folder / "mine").glob("*released*"))


@pytest.mark.slow
def test_a_studio_that_was_killed_leaves_nothing_after_its_next_start(page: Page, folder: Path) -> None:
    studio = Studio(folder).start()
    page.open(studio.link, "Choose a table")
    page.find("#upload").send_keys(str(folder / "elsewhere.csv"))
    page.wait("elsewhere.csv")
    assert "elsewhere.csv" in [path.name for path in studio.private_files]
    studio.end(signal.SIGKILL)
    page.press("Continue").wait("dipriv studio")
    assert "does not answer" in page.text
    port = re.findall(r":(\d+)/", studio.link)[0]
    again = Studio(folder, ("--port", port)).start()
    try:
        assert [path.name for path in again.private_files].count("lock") == 2
        assert "elsewhere.csv" not in [path.name for path in again.private_files]
        page.driver.refresh()
        page.wait("dipriv studio")
        assert "Open the link that the terminal shows" in page.text
        page.open(again.link, "Choose a table")
    finally:
        again.end()


@pytest.mark.slow
def test_by_keyboard_alone(page: Page, started: Studio) -> None:
    page.open(started.link, "people.csv")
    tab_to(page, "use-0").send_keys("l")  # leave out
    tab_to(page, "question").send_keys(Keys.ENTER)
    page.wait("What will")
    tab_to(page, "budget").send_keys(Keys.ENTER)
    page.wait("How much")
    tab_to(page, "slider").send_keys(Keys.ARROW_RIGHT)
    for _ in range(2):
        title = page.title
        tab_to(page, "").send_keys(Keys.ENTER)
        page.until(lambda before=title: page.title not in (before, "Releasing"))  # type: ignore[misc]
    assert page.title == "Released"


def tab_to(page: Page, name: str) -> Any:
    """Press the tabulator until something of this id or value, or the last large button, has the focus."""
    for _ in range(200):
        page.driver.switch_to.active_element.send_keys(Keys.TAB)
        found = page.driver.switch_to.active_element
        if page.run("return arguments[0].matches('.go button')", found) and not name:
            return found
        if name and name in (found.get_attribute("id"), found.get_attribute("value")):
            ring = page.run("const s = getComputedStyle(arguments[0]); return s.outlineStyle + s.outlineWidth", found)
            assert ring == "solid3px"
            return found
    raise AssertionError(name)


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """axe-core, which is not a part of this project, from npm."""
    npm, place = shutil.which("npm"), tmp_path_factory.mktemp("axe")
    if npm is None:
        pytest.skip("no npm on this machine, which fetches axe-core")
    asked = [npm, "pack", "--silent", "axe-core@4"]
    ran = subprocess.run(asked, cwd=place, capture_output=True, check=False, timeout=120)
    if ran.returncode:
        pytest.skip("npm cannot fetch axe-core here")
    with tarfile.open(next(place.glob("*.tgz"))) as archive:
        content = archive.extractfile("package/axe.min.js")
        assert content is not None
        return content.read().decode()


@pytest.mark.slow
@pytest.mark.parametrize("width", [PHONE, DESKTOP])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_no_violation_and_no_page_is_wider_than_its_window(
    folder: Path, started: Studio, axe: str, width: int, dark: bool
) -> None:
    with browsing(folder, width, dark=dark) as page:
        # the policy of the page forbids other scripts than its own; the driver's are not the page's
        def check() -> None:
            found = page.driver.execute_async_script(axe + ";axe.run().then(arguments[arguments.length - 1])")
            assert [(one["id"], [node["html"] for node in one["nodes"]]) for one in found["violations"]] == []
            assert page.run("return document.documentElement.scrollWidth") <= width, page.title

        page.open(started.link, "people.csv")
        for summary in page.driver.find_elements("tag name", "summary"):
            summary.click()
        check()
        page.choose("#use-0", "drop").press("Continue").wait("What will")
        page.choose("#one", "age").choose("#other", "town").press("Add the pair").until(
            lambda: "age with town" in page.text
        )
        check()
        page.press("Continue").wait("How much")
        check()
        page.write("#epsilon", "x").press("Continue").until(lambda: "is not a number" in page.text)
        check()
        page.write("#epsilon", "1").press("Continue").wait("Release")
        check()
        page.press("Release: spend").wait("Released")
        check()
        page.click('.steps a[href="#ledger"]').wait("Ledger")
        check()
        page.run("document.querySelector('h1').insertAdjacentHTML('afterend', '<input><img src=data:,>')")  # control
        with pytest.raises(AssertionError, match="image-alt"):
            check()


@pytest.mark.slow
def test_from_the_survey_to_a_release_in_ten_clicks(page: Page, folder: Path) -> None:
    """What `make studio` starts; the clicks are counted, and take far less than three minutes."""
    pytest.importorskip("statsmodels", reason="the survey is in statsmodels")
    from examples.demo import survey_files

    table, schema = survey_files(folder / "mine")
    begun = time.monotonic()
    studio = Studio(folder, (table.name, "--schema", schema.name)).start()
    try:
        page.open(studio.link, "survey.csv")
        page.press("Continue").wait("What will").press("Continue").wait("How much").press("Continue").wait("Release")
        page.press("Release: spend").wait("Released").press("The released table")  # 5 clicks
        page.until((folder / "downloads" / "survey-released.csv").exists)
        assert time.monotonic() - begun < 180
        assert dipriv.load_sheet(folder / "mine" / "survey-released.csv").guarantee.epsilon > 0
    finally:
        studio.end()
