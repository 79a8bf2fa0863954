"""Original beside release: `compare` summarizes two tables as plain data, `write_report` draws them as one HTML file.

What is compared contains statistics of the private table: it is for the owner of the data, not for publication.
"""

from dipriv.report.extra import check_extras
from dipriv.report.facts import Comparison
from dipriv.report.page import render, write_report
from dipriv.report.summarize import compare

__all__ = ["Comparison", "check_extras", "compare", "render", "write_report"]
