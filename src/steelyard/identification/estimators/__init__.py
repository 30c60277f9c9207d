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


def estimator_named(name: str) -> Estimator:
    """An estimator with its usual settings, by name."""
    for known, cls in ESTIMATORS.items():
        if known.lower() == name.strip().lower():
            made: Estimator = cls()
            return made
    raise OptionError(unknown_name("estimator", name, ESTIMATORS))


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
