"""docs/audit.md, from the record alone: no number is written here.

A part's file docs/audit/PART.json becomes a section through its function in SECTIONS.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.audit.judges_page import section_judges
from benchmarks.audit.our_pages import section_attacks, section_bounds, section_fuzz

SECTIONS: dict[str, Callable[[dict[str, Any]], str]] = {
    "bounds": section_bounds,
    "attacks": section_attacks,
    "judges": section_judges,
    "fuzz": section_fuzz,
}
"""What each part's file becomes, in the order of the page."""


def render(found: dict[str, dict[str, Any]]) -> str:
    """The page: every part on record, in the order of the sections."""
    there = [name for name in SECTIONS if name in found]
    sections = "\n".join(SECTIONS[name](found[name]) for name in there)
    absent = ", ".join(name for name in SECTIONS if name not in found)
    return f"""# Audit

What was measured to see whether the promise of a release holds, and where there is no promise. No audit proves privacy;
the proofs are in [theory](theory). An audit can refute a claim, and it shows what attackers of today get.

{f"Not on record yet: {absent}.{chr(10)}{chr(10)}" if absent else ""}{sections}
## How this page is made

`make audit` measures everything and writes this page; `make audit PARTS="judges"` measures some parts again and keeps
the others, and `python -m benchmarks.audit page` only writes it from the files in [audit](audit).

{chr(10).join(_origin(name, found[name]) for name in there)}
"""


def _origin(name: str, part: dict[str, Any]) -> str:
    """When, on what and with what a part was measured."""
    machine = f"{part['machine']['cores']} cores, {part['machine']['memory in GB']:.0f} GB memory"
    seeds = f", seeds {', '.join(map(str, part['seeds']))}" if "seeds" in part else ""
    versions = "".join(
        f"; {where}: {', '.join(f'{package} {number}' for package, number in packages.items())}"
        for where, packages in part.get("versions", {}).items()
    )
    when = f"{part['date']}, {part['minutes']:.0f} minutes, {machine}{seeds}{versions}"
    return f"* [{name}](audit/{name}.json): {when}."
