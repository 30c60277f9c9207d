"""Settings of joints: a number holds for every joint, a sequence has one number a joint."""

from collections.abc import Callable
from typing import Annotated, Any, ClassVar, get_type_hints

import numpy as np
from numpy.typing import ArrayLike

from ..errors import OptionError

Array = np.ndarray
# What a field may be given: a number or one a joint; it is held as a read-only array of one or n. The word is its rule.
Finite = Annotated[Any, "finite"]
NotNegative = Annotated[Any, "not negative"]
Positive = Annotated[Any, "positive"]
_RULES: dict[str, tuple[Callable[[Array], Array], str]] = {
    "finite": (np.isfinite, "not a finite number"),
    "not negative": (lambda x: np.isfinite(x) & (x >= 0), "not a finite number of at least 0"),
    "positive": (lambda x: np.isfinite(x) & (x > 0), "not a finite number above 0"),
}


class PerJoint:
    """Settings of n joints, or of as many as there are where every field is one number."""

    label: ClassVar[str]
    _rules: ClassVar[dict[str, str]]  # of the fields that have one

    def __init_subclass__(cls) -> None:
        hints = get_type_hints(cls, include_extras=True)
        cls._rules = {name: hint.__metadata__[0] for name, hint in hints.items() if hasattr(hint, "__metadata__")}

    def __post_init__(self) -> None:
        for name, rule in self._rules.items():
            object.__setattr__(self, name, self._checked(name, rule))
        several = {name: len(getattr(self, name)) for name in self._rules}
        several = {name: count for name, count in several.items() if count > 1}
        if len(set(several.values())) > 1:
            listed = ", ".join(f"{name} {count}" for name, count in several.items())
            raise OptionError(f"{self.label}: numbers of joints differ: {listed}; give one number, or one a joint")

    def _checked(self, name: str, rule: str) -> Array:
        try:
            values = np.array(getattr(self, name), dtype=float)
        except (TypeError, ValueError):
            raise OptionError(f"{self.label}: {name} is not numeric; give one number, or one a joint") from None
        if values.ndim > 1 or values.size == 0:
            raise OptionError(f"{self.label}: {name} has shape {values.shape}; give one number, or one a joint")
        values = values.reshape(-1)
        holds, problem = _RULES[rule]
        self.require(holds(values), name, values, problem)
        values.flags.writeable = False
        return values

    def require(self, ok: Array, name: str, values: Array, problem: str) -> None:
        """Refuse settings with the first joint whose value is not ok."""
        if not np.all(ok):
            k = int(np.argmin(np.broadcast_to(ok, np.broadcast_shapes(np.shape(ok), values.shape))))
            value = values[k if len(values) > 1 else 0]
            where = f"{name} of joint {k + 1}" if np.size(ok) > 1 else name
            raise OptionError(f"{self.label}: {where} is {value:g}, {problem}; correct it")

    @property
    def joints(self) -> int | None:
        """How many joints the settings are for, `None` where one number holds for any."""
        largest = max((len(getattr(self, name)) for name in self._rules), default=1)
        return largest if largest > 1 else None

    def rows(self, n: int, *columns: ArrayLike) -> Array:
        """The columns as a table with a row a joint, (n, columns)."""
        if self.joints not in (None, n):
            raise OptionError(
                f"{self.label} is set for {self.joints} joints, the robot has {n}; give one number a joint"
            )
        return np.stack([np.broadcast_to(column, n) for column in columns], axis=1).astype(float)
