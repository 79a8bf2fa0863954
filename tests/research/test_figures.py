"""The explanatory figures: well-formed, the same on every draw, and true to what the mechanism does."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from scipy import stats

from dipriv._base.atoms_line import AtomsLine
from dipriv._base.columns import ColumnValues
from dipriv._random.bits import source
from dipriv.codecs.real import RealCodec
from dipriv.kernels import Laplace
from dipriv.kernels.noisy_uniform import noisy_uniform_cdf
from dipriv.mechanism import Chain
from dipriv.references import Mixture
from dipriv.references._models.boxes import Boxes
from dipriv.references._models.distributions import ContinuousDistribution
from dipriv.references._models.independent import Independent
from research.experiments.figures import CONTINUALIZATION, FLOWCHART, GRID, MIXED, encoded_sample, journey, steps
from research.protocol import Drawing

DRAWINGS = (FLOWCHART, CONTINUALIZATION, MIXED, GRID)


@pytest.mark.slow
@pytest.mark.parametrize("drawing", DRAWINGS, ids=lambda drawing: drawing.name)
def test_a_drawing_is_well_formed_and_always_the_same(drawing: Drawing, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    files = [tmp_path / "first.svg", tmp_path / "again.svg"]
    for file in files:
        drawing.draw(file)
    first, again = (file.read_bytes() for file in files)
    root = ElementTree.fromstring(first)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert list(root.iter("{http://www.w3.org/2000/svg}path"))
    assert first == again


def test_the_flowchart_ends_with_what_the_mechanism_releases() -> None:
    law, z = ContinuousDistribution(stats.expon()), stats.expon().rvs(500, random_state=np.random.default_rng(0))
    at = steps(z, law, source(5))
    codec = RealCodec(AtomsLine.around(np.empty(0)), np.dtype(np.float64))
    chain = Chain((codec,), Independent((law,)), Laplace().build(1.0, ["z"]), (0,))
    np.testing.assert_array_equal(at.released, chain.privatize([ColumnValues(z)], source(5))[0].values)
    assert not np.array_equal(at.released, chain.privatize([ColumnValues(z)], source(6))[0].values)


def test_the_flowchart_shows_the_noise_that_the_kernel_added() -> None:
    law, z = ContinuousDistribution(stats.expon()), stats.expon().rvs(500, random_state=np.random.default_rng(0))
    at = steps(z, law, source(5))
    off = np.abs(noisy_uniform_cdf(at.noisy, 1.0) - at.flat)
    assert off.max() < 2.0**-40  # the kernel rounds u to steps of 2^-40, and the density of U + e is below 1/2
    assert np.abs(noisy_uniform_cdf(at.u, 1.0) - at.flat).max() > 0.1


def test_an_atom_is_spread_over_the_interval_squeezed_in_for_it() -> None:
    law = Mixture({0.0: 0.4}, stats.norm())
    line = AtomsLine.around(np.zeros(1), law.kind.unit or 1.0)
    z, v = encoded_sample(law, RealCodec(line, np.dtype(np.float64)), 1000)
    inside = (v > line.shifts[0]) & (v <= line.shifts[1])
    np.testing.assert_array_equal(inside, z == 0)
    assert len(np.unique(v)) == len(v) > len(np.unique(z))


def test_a_row_is_released_into_a_box() -> None:
    points = np.array([[1.0, 3.0], [2.0, 1.0], [3.0, 5.0], [4.0, 2.0], [5.0, 4.0]])  # so every box is a unit square
    cubes = Boxes.build(points, np.full(2, -np.inf), edge="paper")
    way = journey(cubes, np.array([0.5, 2.25]), source(1))
    np.testing.assert_allclose(way.u, [0.1, 0.25])
    assert np.ceil(way.released).tolist() in points.tolist()
