"""References: distributions that carry V to uniforms and back."""

from dipriv.references.cubes import Cubes
from dipriv.references.empirical import Empirical
from dipriv.references.grouped import AtGroups, Grouped, GroupedCubes
from dipriv.references.guide import Guide
from dipriv.references.known import Independent, Known, Normal
from dipriv.references.laws import ContinuousLaw, IntegerLaw, Law, LevelsLaw, Mixture
from dipriv.references.network import Network, Node
from dipriv.references.parametric import Parametric
from dipriv.references.private import Private
from dipriv.references.protocol import Order, Recipe, Reference, ReferenceRows, RowsRecipe, draw_order

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
    "Network",
    "Node",
    "Normal",
    "Order",
    "Parametric",
    "Private",
    "Recipe",
    "Reference",
    "ReferenceRows",
    "RowsRecipe",
    "draw_order",
]
