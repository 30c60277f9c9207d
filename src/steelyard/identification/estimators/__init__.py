"""Estimators, one file a family; `ESTIMATORS` has them by the names of the command line."""

from collections.abc import Mapping

from ...errors import OptionError, unknown_name
from ..fit import Estimator
from ..online.settings import METHODS as RECURSIVE
from .bayes import MAP, Ridge
from .didim import DIDIM
from .instruments import IV
from .least_squares import OLS, WLS
from .likelihood import ML
from .neural import Adaline, HopfieldTank
from .output_error import CLIE, CLOE
from .physical import Physical
from .robust import IRLS
from .rounds import Rounds
from .total_least_squares import TLS

ESTIMATORS: Mapping[str, type] = {
    "OLS": OLS,
    "WLS": WLS,
    "IRLS": IRLS,
    "TLS": TLS,
    "ML": ML,
    "MAP": MAP,
    "Ridge": Ridge,
    "IV": IV,
    "DIDIM": DIDIM,
    "CLOE": CLOE,
    "CLIE": CLIE,
    "Adaline": Adaline,
    "HopfieldTank": HopfieldTank,
    "Rounds": Rounds,
    **RECURSIVE,
}
# Left out of "all": a square-root form answers like its plain one, three rounds come to WLS, and the particles take
# minutes.
ON_REQUEST = ("Rounds", "SREKF", "SRUKF", "SRCDKF", "PF")


# What the literature calls them; "IDIM-" before a name says nothing here, "PC-" asks for bodies that can exist.
_OTHER_NAMES = {"hopfield": "HopfieldTank", "htrnn": "HopfieldTank", "adann": "Adaline"}
_PHYSICAL = "pc"


def _compact(name: str) -> str:
    return "".join(c for c in name.lower() if c not in "-_ –")


def _physical(cls: type) -> Estimator:
    """An estimator with parameters that bodies can have: its own form of that, else fitted on top."""
    if cls in (IV, DIDIM):
        own: Estimator = cls(physical=True)
    elif cls in (CLOE, CLIE):
        own = cls(parametrisation="log-cholesky")
    else:
        own = Physical(inner=cls())
    return own


def estimator_named(name: str) -> Estimator:
    """An estimator with its usual settings, by name; `IDIM-IV`, `PC-DIDIM` and `Hopfield` are understood, too."""
    known = {_compact(key): cls for key, cls in ESTIMATORS.items()}
    known |= {other: ESTIMATORS[key] for other, key in _OTHER_NAMES.items()}
    asked = _compact(name)
    physical = asked.startswith(_PHYSICAL)
    cls = known.get(asked.removeprefix(_PHYSICAL).removeprefix("idim"))
    if cls is None:
        raise OptionError(unknown_name("estimator", name, ESTIMATORS))
    if physical:
        return _physical(cls)
    made: Estimator = cls()
    return made


__all__ = [
    "CLIE",
    "CLOE",
    "DIDIM",
    "ESTIMATORS",
    "IRLS",
    "IV",
    "MAP",
    "ML",
    "OLS",
    "ON_REQUEST",
    "TLS",
    "WLS",
    "Adaline",
    "HopfieldTank",
    "Physical",
    "Ridge",
    "Rounds",
    "estimator_named",
]
