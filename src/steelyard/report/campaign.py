"""A campaign as one page: what it says in short, scores, and pictures."""

import re
from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..evaluation.campaign.campaign import Campaign
from ..evaluation.campaign.summary import Level, Score, groups_of
from ..evaluation.campaign.table import Table
from .campaign_plots import Entry, against_time, boxes, honesty, maps
from .campaign_reading import READING_MEANS, reading
from .markup import Cell, Html, fresh, heading, join, paragraph, plot, section, tabs
from .markup import table as as_table
from .page import page, write_text

# Pixels that three or four panels need beside each other.
_WIDTH = 760
_NUMBER = re.compile(r"\d+(\.\d+)?([eE][-+]?\d+)?")


class Column(NamedTuple):
    """A figure of a score, and its unit."""

    unit: str
    value: Callable[[Score], float]

    def text(self, score: Score) -> str:
        x = float(self.value(score))
        if not np.isfinite(x):
            return "∞" if x == np.inf else "–"
        return f"{x:.3g}{' ' if self.unit else ''}{self.unit}"


COLUMNS = {
    "runs": Column("", lambda s: s.runs),
    "torque error": Column("%", lambda s: 100 * s.torque_error),
    "95 % below": Column("%", lambda s: 100 * s.torque_error_worst),
    "position error": Column("%", lambda s: 100 * s.position_error),
    "parameter error": Column("%", lambda s: 100 * s.parameter_error),
    "bias": Column("", lambda s: s.bias),
    "efficiency": Column("%", lambda s: 100 * s.efficiency),
    "coverage": Column("%", lambda s: 100 * s.coverage),
    "feasible": Column("%", lambda s: 100 * s.feasible),
    "converged": Column("%", lambda s: 100 * s.converged),
    "wrong": Column("%", lambda s: 100 * s.wrong),
    "not converged": Column("%", lambda s: 100 * s.not_converged),
    "failed": Column("%", lambda s: 100 * s.failed),
    "time": Column("ms", lambda s: 1e3 * s.seconds),
    "intervals": Column("ms", lambda s: 1e3 * s.statistics_seconds),
    "iterations": Column("", lambda s: s.iterations),
    "model evaluations": Column("", lambda s: s.evaluations),
}
_ACCURACY = (
    "torque error", "95 % below", "position error", "parameter error", "bias", "efficiency", "coverage", "feasible",
)  # fmt: skip
_ENDS = (
    "runs", "converged", "wrong", "not converged", "failed", "time", "intervals", "iterations", "model evaluations",
)  # fmt: skip
_WORDS = (
    (
        "Converged",
        "the estimator says so, its torque error on the validation trajectory is below the study's limit ({limit:g} %) "
        "and below that of its initial guess. Wrong: it says so, and one of the two does not hold. Not converged: it "
        "says so itself. Failed: no answer.",
    ),
    (
        "Torque error",
        "‖tau − prediction‖/‖tau‖ on the validation trajectory, which nothing was learnt from, against the true torque "
        "without noise, where joints move; median over runs. 95 % below: what 95 % of the runs are below.",
    ),
    (
        "Position error",
        "‖q − q_found‖/‖q‖ when a robot with the parameters found is simulated along the validation trajectory under "
        "the same controller; median. A dash: most of these robots cannot be simulated, as no body is like theirs.",
    ),
    ("Parameter error", "‖β − β_true‖/‖β_true‖ of the base parameters; median."),
    (
        "Bias",
        "of the median parameter, the mean error over the least standard deviation that the torque's noise allows "
        "(Cramér and Rao; the motion taken as known). Efficiency: of the median parameter, that bound's variance over "
        "the mean squared error; an estimator that simulates the controlled robot, or knows of bodies, knows more than "
        "the torque says and may go beyond 100 %.",
    ),
    ("Coverage", "the share of base parameters that are inside their 95 % intervals; 95 is honest."),
    ("Feasible", "runs whose bodies and joints can exist."),
    (
        "Time",
        "processor time of one estimate, without preprocessing; its intervals beside it. Model evaluations: passes of "
        "the dynamic model over the motion, one for the regressor and one for each simulated motion.",
    ),
)


def noise_of(score: Score | Level) -> str:
    """A level of noise in the units of the field."""
    return f"σq {np.degrees(score.position_noise):.2g}°, στ {score.torque_noise:g}"


def _table(entries: Sequence[Entry], names: Sequence[str], caption: str) -> Html:
    columns = [f"{name}, {COLUMNS[name].unit}" if COLUMNS[name].unit else name for name in names]
    rows: list[list[Cell]] = [[one.name, *(float(COLUMNS[n].value(one.score)) for n in names)] for one in entries]
    return as_table(("estimator", *columns), rows, caption)


def _entries(scores: Sequence[Score], table: Table) -> list[Entry]:
    """Scores of one robot and friction; the way of preprocessing belongs to a name where there are several."""
    rows = groups_of(table)
    several = len({score.preprocessing for score in scores}) > 1
    found = []
    for s in scores:
        key = (s.robot, s.friction, s.position_noise, s.torque_noise, s.preprocessing, s.estimator)
        name = f"{s.estimator}, {s.preprocessing}" if several else s.estimator
        found.append(Entry(name, noise_of(s), s, {name: column[rows[key]] for name, column in table.items()}))
    return sorted(found, key=lambda one: (one.score.position_noise, one.score.torque_noise))


def _heading(score: Score | Level) -> str:
    return f"{score.robot}, friction {score.friction}"


def _group_section(name: str, title: str, entries: list[Entry]) -> Html:
    levels = {level: list(group) for level, group in groupby(entries, key=lambda one: one.level)}
    last, noisiest = list(levels.items())[-1]
    return section(
        name,
        title,
        tabs(
            {
                level: join(
                    _table(some, _ACCURACY, "How good the answers are"),
                    _table(some, _ENDS, "How the runs ended, and what they cost"),
                )
                for level, some in levels.items()
            }
        ),
        heading("Errors", "median, quartiles, and the middle 90 % of the runs"),
        plot(boxes(entries), least=_WIDTH),
        heading("Error against time"),
        plot(against_time(entries), least=_WIDTH),
        heading("How honest the intervals are, and how good the estimate could be"),
        plot(honesty(entries), least=_WIDTH),
        heading("Convergence", f"{last}; the share of runs that converged"),
        plot(
            maps(noisiest),
            "Across: initial guesses, from the best to the worst. Up: noise runs. An estimator that does not look at "
            "the guess has rows of one colour. Runs that did not converge are marked.",
            least=_WIDTH,
        ),
    )


def _levels(levels: Sequence[Level]) -> Html:
    """What the recordings are like that everything is learnt from."""
    columns = ("robot", "noise", "torque away from a quiet robot's, %", "samples at a torque limit, %")
    rows: list[list[Cell]] = [[_heading(one), noise_of(one), 100 * one.unrest, 100 * one.saturated] for one in levels]
    words = (
        "The noise of the encoders comes through the controller into the torque and shakes the robot; what an "
        "estimator has to do with is not the noise of the torque sensors alone."
    )
    return join(heading("What the recordings are like"), as_table(columns, rows), paragraph(words, "note"))


def _ends(table: Table) -> Html:
    """What runs said that did not come to an answer to be trusted, how often."""
    counts: dict[tuple[str, str, str], int] = {}
    for who, status, what in zip(table["estimator"], table["status"], table["message"], strict=True):
        if status != "converged":
            key = (str(who), str(status), _NUMBER.sub("…", str(what)))  # what differs in figures alone is one thing
            counts[key] = counts.get(key, 0) + 1
    if not counts:
        return paragraph("Every run converged.")
    most = sorted(counts.items(), key=lambda item: -item[1])[:40]
    rows: list[list[Cell]] = [[who, status, count, what] for (who, status, what), count in most]
    left = len(counts) - len(most)
    return as_table(("estimator", "ended", "runs", "what it said"), rows, f"and {left} rarer ones" if left else "")


def campaign_page(campaign: Campaign) -> Html:
    """The page."""
    study, table = campaign.study, campaign.table
    by_robot: dict[str, list[Score]] = {}
    for score in campaign.scores:
        by_robot.setdefault(_heading(score), []).append(score)
    entries = {title: _entries(scores, table) for title, scores in by_robot.items()}
    short = [reading(some, title) for title, some in entries.items()]
    done = len(table["status"])
    if done < campaign.runs:
        short.insert(0, paragraph(f"{done} of {campaign.runs} runs are done; figures are those of these runs.", "note"))
    body: list[str] = [section("short", "In short", *short, paragraph(READING_MEANS, "note"), _levels(campaign.levels))]
    contents = {"short": "In short"}
    for title, some in entries.items():
        name = fresh("group")
        contents[name] = title
        body.append(_group_section(name, title, some))
    limit = 100 * study.converged.torque_error
    words: list[list[Cell]] = [[word, told.format(limit=limit)] for word, told in _WORDS]
    body.append(section("failures", "What runs said that did not converge", _ends(table)))
    body.append(section("words", "What the words mean", as_table(("word", "meaning"), words)))
    contents |= {"failures": "Not converged", "words": "Words"}
    return page(f"Benchmark {study.name}", body, subtitle=f"{done} runs", contents=contents)


def write_campaign_report(campaign: Campaign, path: Path) -> None:
    """Write the page, whole or not at all."""
    write_text(path, campaign_page(campaign))
