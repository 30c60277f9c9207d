"""What a user can mend is a `SteelyardError`: one sentence that says what, where, the number and the remedy."""

from collections.abc import Iterable
from difflib import get_close_matches


class SteelyardError(Exception):
    """Base of all errors that the user's input causes; the command line turns it into exit code 2."""


class ModelError(SteelyardError):
    """A robot model, or a choice of its bodies and joints, cannot be used."""


class DataError(SteelyardError):
    """Samples or a recording cannot be used."""


class OptionError(SteelyardError):
    """A setting has a value that cannot be used."""


def unknown_name(what: str, name: str, valid: Iterable[str]) -> str:
    """The sentence for a name that is not there: it lists the names that are, the likely one first."""
    valid = list(valid)
    close = get_close_matches(name, valid, n=1)
    hint = f"did you mean '{close[0]}'? " if close else ""
    listed = ", ".join(valid[:40]) + (f", … {len(valid) - 40} more" if len(valid) > 40 else "")
    return f"no {what} '{name}'; {hint}valid: {listed or 'none'}"
