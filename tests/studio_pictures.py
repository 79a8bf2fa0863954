"""Draw the tutorial's pictures of the studio, with the demo's survey.

python -m tests.studio_pictures docs/images
"""

from __future__ import annotations

import io
import sys
import tempfile
from pathlib import Path
from typing import Any

from dipriv.ledger import Ledger
from examples.demo import survey_files
from tests.unit.studio.test_browser import Page, Studio, browsing

WIDTH, COLOURS = 1000, 64
"""Of a picture, in pixels, and how many colours it has."""


def main(folder: Path) -> None:
    """Go from the table to the release, and draw three of the steps."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        table, schema = survey_files(place / "mine")
        Ledger.create(place / "ledger.db").close()
        studio = Studio(place, (table.name, "--schema", schema.name)).start()
        try:
            with browsing(place, WIDTH) as page:
                page.open(studio.link, "survey.csv")
                draw(page, folder / "studio-table.png", 900)
                page.press("Continue").wait("What will").press("Continue").wait("How much")
                draw(page, folder / "studio-budget.png", 760)
                page.press("Continue").wait("Release").press("Release: spend").wait("Released")
                page.run(
                    "for (const code of document.querySelectorAll('code'))"
                    " code.textContent = code.textContent.replace(arguments[0], '/home/me/survey')",
                    str(table.parent.resolve()),
                )
                draw(page, folder / "studio-release.png", 900)
        finally:
            studio.end()


def draw(page: Page, path: Path, height: int) -> None:
    """The upper part of a page, in few colours."""
    from PIL import Image

    size = {"width": WIDTH, "height": height, "deviceScaleFactor": 1, "mobile": False}
    page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    page.run("document.activeElement.blur(); window.scrollTo(0, 0)")
    shown: Any = Image.open(io.BytesIO(page.driver.get_screenshot_as_png())).convert("RGB")
    shown.quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
