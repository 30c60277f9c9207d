"""`solve`: the chapter's exercises by number, and its formulas."""

from collections.abc import Callable

import numpy as np

from ..errors import OptionError, unknown_name
from .answer import Answer
from .base import count
from .elastic import elastic
from .formulas import FORMULAS
from .grasp import four_fingers
from .payload import adaptation
from .recursion import recursion
from .stribeck import stribeck
from .touch import environment
from .two_link import two_link


def formulas(rng: np.random.Generator) -> Answer:
    """Every formula that does not hold as printed."""
    found = [case(rng) for case in FORMULAS]
    lines = tuple(line for lines, _ in found for line in lines)
    return Answer("formulas", "Formulas that do not hold as printed", lines, tuple(why for _, why in found))


EXERCISES: dict[str, Callable[[np.random.Generator], Answer]] = {
    "7.1": two_link,
    "7.2": recursion,
    "7.3": stribeck,
    "7.4": count,
    "7.5": elastic,
    "7.6": adaptation,
    "7.7": four_fingers,
    "7.8": environment,
    "formulas": formulas,
}


def solve(number: str, seed: int = 0) -> Answer:
    """The answer to an exercise; random states and noise come from the seed, whichever others are solved."""
    if number not in EXERCISES:
        raise OptionError(unknown_name("exercise", number, EXERCISES))
    return EXERCISES[number](np.random.default_rng(seed))
