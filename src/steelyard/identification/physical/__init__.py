"""Parameters that bodies and joints can have: the constrained fit and what it consists of."""

from .fit import PhysicalFit, PhysicalSettings, feasible_projection, solve_physical
from .limits import Equality

__all__ = ["Equality", "PhysicalFit", "PhysicalSettings", "feasible_projection", "solve_physical"]
