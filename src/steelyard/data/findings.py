"""What an inspection finds: one thing a finding, with where it is, its number and what to do about it."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .recording import Recording

SEVERITIES = ("error", "warning", "note")


@dataclass(frozen=True)
class Finding:
    """One thing that is worth knowing before anything is computed."""

    severity: str  # error: results will be wrong; warning: they may be; note: good to know
    what: str  # a word for programs
    text: str
    remedy: str = ""
    joint: str | None = None
    rows: tuple[int, int] | None = None  # first and last
    seconds: tuple[float, float] | None = None  # from the first row
    number: float | None = None


@dataclass(frozen=True)
class QualityReport:
    """What a recording is worth: findings, most severe first, and the numbers behind them."""

    samples: int
    seconds: float
    rate_hz: float
    joints: tuple[str, ...]
    findings: tuple[Finding, ...]
    measures: Mapping[str, Any] = field(default_factory=dict)  # by name, a number or a list with one a joint

    @property
    def verdict(self) -> str:
        """One sentence."""
        errors = sum(finding.severity == "error" for finding in self.findings)
        warnings = sum(finding.severity == "warning" for finding in self.findings)
        if errors:
            return f"not fit for identification as it is: {_counted(errors, 'fault')}, {_counted(warnings, 'warning')}"
        if warnings:
            return f"usable with care: {_counted(warnings, 'warning')}"
        return "good"

    @property
    def fit(self) -> bool:
        """Whether nothing was found that makes results wrong."""
        return all(finding.severity != "error" for finding in self.findings)

    def about(self, what: str) -> tuple[Finding, ...]:
        """The findings of a kind."""
        return tuple(finding for finding in self.findings if finding.what == what)

    def as_dict(self) -> dict[str, Any]:
        """All of it as JSON has it."""
        return {"verdict": self.verdict, "fit": self.fit, **asdict(self)}


def _counted(count: int, word: str) -> str:
    return f"{count or 'no'} {word}" + ("" if count == 1 else "s")


def by_severity(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Most severe first, else in the order in which they were found."""
    return tuple(sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity)))


def runs(mark: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """First and last row of every stretch of marked rows."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], mark, [False]]).astype(np.int8)))
    return [(int(a), int(b) - 1) for a, b in edges.reshape(-1, 2)]


def where(recording: Recording, rows: tuple[int, int]) -> dict[str, Any]:
    """The place of a finding: rows, and seconds from the first one."""
    since = recording.t - recording.t[0]
    return {"rows": rows, "seconds": (float(since[rows[0]]), float(since[rows[1]]))}


def listed(rows: NDArray, most: int = 5) -> str:
    """Row numbers for people."""
    text = ", ".join(str(int(row)) for row in rows[:most])
    return text + (f", … {len(rows) - most} more" if len(rows) > most else "")
