"""What a campaign says in short: which estimator is good at what, at each level of noise."""

from collections.abc import Callable, Sequence

from ..evaluation.campaign.summary import Score
from .campaign_plots import Entry
from .markup import Cell, Html, table

# Below this share of converged runs an estimator is not to be relied on.
RELIABLE = 0.95
# Errors this close to the least one are as good.
AS_GOOD = 1.1
HONEST = (0.90, 0.99)


def _least(entries: Sequence[Entry], value: Callable[[Score], float]) -> Entry | None:
    known = [one for one in entries if value(one.score) == value(one.score)]
    return min(known, key=lambda one: value(one.score)) if known else None


def _torque(entry: Entry | None) -> str:
    return "none" if entry is None else f"{entry.name}: {100 * entry.score.torque_error:.3g} %"


def _row(level: str, entries: Sequence[Entry]) -> tuple[Cell, ...]:
    reliable = [one for one in entries if one.score.converged >= RELIABLE]
    best = _least(reliable, lambda s: s.torque_error)
    near = [one for one in reliable if best and one.score.torque_error <= AS_GOOD * best.score.torque_error]
    quick = _least(near, lambda s: s.seconds)
    possible = _least([one for one in reliable if one.score.feasible == 1.0], lambda s: s.torque_error)
    honest = _least([one for one in reliable if HONEST[0] <= one.score.coverage <= HONEST[1]], lambda s: -s.efficiency)
    rest = [one for one in entries if one.score.converged < RELIABLE]
    return (
        level,
        _torque(best),
        "none" if quick is None else f"{quick.name}: {1e3 * quick.score.seconds:.3g} ms ({len(near)} are as good)",
        _torque(possible),
        "none" if honest is None else f"{honest.name}: {100 * honest.score.coverage:.3g} %",
        ", ".join(f"{one.name} ({100 * one.score.converged:.3g} %)" for one in rest) or "none",
    )


READING = (
    "noise", "least torque error", f"fastest within {100 * (AS_GOOD - 1):.0f} %", "with possible bodies",
    "with honest intervals", "not to be relied on",
)  # fmt: skip
READING_MEANS = (
    f"Named are estimators that converged in at least {100 * RELIABLE:.0f} % of their runs: the one with the least "
    f"median torque error, the fastest whose error is within {100 * (AS_GOOD - 1):.0f} % of that, the best whose "
    f"bodies could exist in every run, and the most efficient whose intervals hold {100 * HONEST[0]:.0f} to "
    f"{100 * HONEST[1]:.0f} % of the true parameters. The last column has those that converged less often."
)


def reading(entries: Sequence[Entry], title: str) -> Html:
    """A row a level of noise; only estimators that converge nearly always are named as good at anything."""
    levels = list(dict.fromkeys(entry.level for entry in entries))
    return table(READING, [_row(level, [one for one in entries if one.level == level]) for level in levels], title)
