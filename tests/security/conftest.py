"""A reference of each sort, exported once."""

from __future__ import annotations

import pytest

import dipriv
from dipriv.release import local
from tests.security.support import FITS, PEOPLE


@pytest.fixture(scope="session")
def exported(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The bytes of a reference of each sort."""
    path = tmp_path_factory.mktemp("exported") / "reference"
    found = {}
    for name, (columns, options) in FITS.items():
        dipriv.DIP(**({"epsilon": 1.0} | options)).fit(PEOPLE[columns]).export_local(path)
        found[name] = path.read_bytes()
        local.read(found[name])
    return found
