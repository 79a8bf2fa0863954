"""References: distributions that carry V to uniforms and back."""

from dipriv.references.cubes import Cubes
from dipriv.references.empirical import Empirical
from dipriv.references.grouped import AtGroups, Grouped, GroupedCubes
from dipriv.references.guide import Guide
from dipriv.references.known import Independent, Known, Normal
from dipriv.references.laws import ContinuousLaw, IntegerLaw, Law, LevelsLaw, Mixture
from dipriv.references.parametric import Parametric
from dipriv.references.protocol import Order, Recipe, Reference, ReferenceRows, draw_order

__all__ = [
    "AtGroups",
    "ContinuousLaw",
    "Cubes",
    "Empirical",
    "Grouped",
    "GroupedCubes",
    "Guide",
    "Independent",
    "IntegerLaw",
    "Known",
    "Law",
    "LevelsLaw",
    "Mixture",
    "Normal",
    "Order",
    "Parametric",
    "Recipe",
    "Reference",
    "ReferenceRows",
    "draw_order",
]
