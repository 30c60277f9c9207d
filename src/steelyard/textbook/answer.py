"""`Answer`: what an exercise comes to, line by line, beside what the chapter says."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Line:
    """One figure: ours, and the chapter's where it has one."""

    key: str
    what: str
    ours: float | str | bool
    book: float | str | bool | None = None
    unit: str = ""


@dataclass(frozen=True)
class Answer:
    """The figures of an exercise, where the chapter errs and why, and the command that does it for one's own robot."""

    number: str
    title: str
    lines: tuple[Line, ...]
    differs: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()

    def __getitem__(self, key: str) -> Line:
        for line in self.lines:
            if line.key == key:
                return line
        raise KeyError(f"{self.number} has no line '{key}'; it has: {', '.join(line.key for line in self.lines)}")

    def value(self, key: str) -> float:
        return float(self[key].ours)


def off(found: np.ndarray, expected: np.ndarray) -> float:
    """The largest difference as a share of the largest expected value."""
    return float(np.abs(found - expected).max() / np.abs(expected).max())
