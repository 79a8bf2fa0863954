"""Where the real data sets lie: the folder named by DIPRIV_DATA, else ../shared/data. Nothing is ever downloaded."""

from __future__ import annotations

import os
from pathlib import Path

from dipriv.errors import InputError

HOMES = {
    "bank": "UCI Machine Learning Repository no. 222, Bank Marketing: https://archive.ics.uci.edu/dataset/222",
    "uc_salary": "Employee Pay at the University of California: https://ucannualwage.ucop.edu/wage/",
    "adult": "UCI Machine Learning Repository no. 2, Adult: https://archive.ics.uci.edu/dataset/2/adult",
    "sdnist": "NIST ACS Data Excerpts: https://github.com/usnistgov/SDNist",
    "movielens": "GroupLens, MovieLens: https://grouplens.org/datasets/movielens/",
}


def data_file(path: str) -> Path:
    """A file of a data set, such as "bank/bank-additional-full.parquet"."""
    root = os.environ.get("DIPRIV_DATA")
    file = (Path(root) if root else Path("..") / "shared" / "data") / path
    if not file.is_file():
        home = HOMES[path.partition("/")[0]]
        asked = f"DIPRIV_DATA={root}" if root else "DIPRIV_DATA is not set, and ../shared/data is the default"
        raise InputError(
            f"the data set {path} is not there ({asked}).",
            f"Get it from {home}, save it as Parquet, and set DIPRIV_DATA to the folder that holds {path}.",
        )
    return file
