"""The documentation site: `make docs`, or `python -m research.site --out build/site`.

The pages of docs/ are Markdown that reads well in the repository, too. For the site they are copied to a folder of
their own together with the documents of the repository's root; links that lead out of docs/ are changed to the copies,
or become the name of the file. Sphinx then builds the site; a warning is an error.
"""

from __future__ import annotations

import argparse
import posixpath
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCUMENTS = {
    "README.md": "index.md",
    "SECURITY.md": "project/security.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "CHANGELOG.md": "project/changelog.md",
    "CODE_OF_CONDUCT.md": "project/conduct.md",
    "examples/README.md": "project/examples.md",
}
"""Documents outside docs/, and their places on the site; the README has a page of its own there, docs/index.md."""
DETAILS = "reproduction/"
"""Pages that other pages lead to, and that the list of pages leaves out."""
LINK = re.compile(r"\[([^\]\[]*)\]\((?!https?:|mailto:|#)([^)\s#]+)(#[^)\s]*)?\)")


def assemble(source: Path, root: Path = ROOT) -> None:
    """Copy all pages of the site into a folder, with links that hold there."""
    if source.exists():
        shutil.rmtree(source)
    shutil.copytree(root / "docs", source, ignore=shutil.ignore_patterns("__pycache__"))
    for page in sorted(source.rglob("*.md")):
        place = page.relative_to(source).as_posix()
        text = relinked(page.read_text(encoding="utf-8"), f"docs/{place}", place, root)
        page.write_text(f"---\norphan: true\n---\n{text}" if place.startswith(DETAILS) else text, encoding="utf-8")
    for origin, place in DOCUMENTS.items():
        if place != "index.md":
            (source / place).parent.mkdir(exist_ok=True)
            text = relinked((root / origin).read_text(encoding="utf-8"), origin, place, root)
            (source / place).write_text(text, encoding="utf-8")


def relinked(text: str, origin: str, place: str, root: Path = ROOT) -> str:
    """The text of a document with links for its place on the site.

    >>> relinked("[a](../SECURITY.md#b), [c](theory/method.md), [d](../src/dipriv/errors.py)", "docs/x.md", "x.md")
    '[a](project/security.md#b), [c](theory/method.md), d (`src/dipriv/errors.py`)'
    """

    def changed(link: re.Match[str]) -> str:
        words, path, anchor = link[1], link[2], link[3] or ""
        target = (root / origin).parent.joinpath(path).resolve().relative_to(root.resolve()).as_posix()
        if target in DOCUMENTS:
            return f"[{words}]({_from(place, DOCUMENTS[target])}{anchor})"
        if target.startswith("docs/"):
            return f"[{words}]({_from(place, target.removeprefix('docs/'))}{anchor})"
        return f"`{target}`" if words.strip("`") == target else f"{words} (`{target}`)"

    return LINK.sub(changed, text)


def _from(page: str, target: str) -> str:
    """The way from a page to another file of the site."""
    return posixpath.relpath(target, posixpath.dirname(page) or ".")


def build(source: Path, out: Path) -> None:
    """Build the site; a warning ends the build."""
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-j", "2", "-b", "html", source, out]
    subprocess.run([str(word) for word in command], check=True)  # noqa: S603 (our own words)


def main() -> None:
    """Assemble, run the gallery where its data are, and build."""
    parser = argparse.ArgumentParser(prog="python -m research.site", description="Build the documentation site.")
    parser.add_argument("--out", type=Path, default=Path("build/site"), help="folder of the site")
    parser.add_argument("--recorded", action="store_true", help="show the gallery on record; do not run it")
    asked = parser.parse_args()
    source = asked.out.with_name(f"{asked.out.name}-source")
    assemble(source)
    if not asked.recorded:
        command = [sys.executable, "-m", "examples.gallery", "--out", str(source / "gallery")]
        subprocess.run(command, check=True)  # noqa: S603 (our own words)
    build(source, asked.out)
    print(f"Open {asked.out / 'index.html'}")


if __name__ == "__main__":
    main()
