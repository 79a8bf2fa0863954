"""References: distributions that carry V to uniforms and back."""

from dipriv.references._models.boxes import Boxes
from dipriv.references._models.bucket_index import BucketIndex
from dipriv.references._models.distributions import (
    ContinuousDistribution,
    Distribution,
    IntegerDistribution,
    LevelsDistribution,
    Mixture,
)
from dipriv.references._models.network import Network, Node
from dipriv.references.empirical import Empirical
from dipriv.references.grouped import AtGroups, Grouped, GroupedBoxes
from dipriv.references.known import Independent, Known, Normal
from dipriv.references.parametric import Parametric
from dipriv.references.private import Private
from dipriv.references.protocol import FittableSpec, Order, Reference, ReferenceRows, ReferenceSpec, draw_order

__all__ = [
    "AtGroups",
    "Boxes",
    "BucketIndex",
    "ContinuousDistribution",
    "Distribution",
    "Empirical",
    "FittableSpec",
    "Grouped",
    "GroupedBoxes",
    "Independent",
    "IntegerDistribution",
    "Known",
    "LevelsDistribution",
    "Mixture",
    "Network",
    "Node",
    "Normal",
    "Order",
    "Parametric",
    "Private",
    "Reference",
    "ReferenceRows",
    "ReferenceSpec",
    "draw_order",
]
