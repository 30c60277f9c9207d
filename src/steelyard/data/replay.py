"""Steps of preprocessing from the history that a recording keeps of them."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from ..errors import DataError, OptionError
from . import differentiate, filters, periods, resample, rows
from .steps import Step

_STEPS = {
    name: kind
    for module in (differentiate, filters, periods, resample, rows)
    for name, kind in vars(module).items()
    if isinstance(kind, type) and issubclass(kind, Step)
}


def _step(entry: Mapping[str, Any]) -> Step:
    kind = _STEPS.get(str(entry.get("step")))
    if kind is None:
        raise DataError(f"no step of preprocessing is called '{entry.get('step')}'; valid: {', '.join(sorted(_STEPS))}")
    own = {field.name for field in fields(kind)}
    settings = {key: tuple(x) if isinstance(x, list) else x for key, x in entry.items() if key in own}
    try:
        return kind(**settings)
    except (TypeError, ValueError, OptionError) as error:
        raise DataError(f"the recorded settings of {entry.get('step')} do not fit: {error}") from None


def steps_from(history: Sequence[Mapping[str, Any]]) -> tuple[Step, ...]:
    """The steps, with the settings that they had; what they found out they find out again."""
    if not all(isinstance(entry, Mapping) for entry in history):
        raise DataError("the history of preprocessing is not a list of steps")
    return tuple(_step(entry) for entry in history)
