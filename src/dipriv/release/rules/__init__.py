"""Rules between columns at work: public rewriting of rows before they are learned from and after they are released."""

from dipriv.release.rules.rewriting import Rewriting, bind, in_force

__all__ = ["Rewriting", "bind", "in_force"]
