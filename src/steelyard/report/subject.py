"""What a report speaks of: an outcome as a study leaves it, or as a result file and its recordings give it back."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..data.recording import Recording
from ..errors import DataError
from ..evaluation.saved_study import read_again, truth_from, validation_from
from ..evaluation.study import Outcome
from ..evaluation.truth import Truth, true_parameters
from ..evaluation.validation import Validation, counted
from ..identification.estimate import Estimate
from ..identification.model import Experiment, sliced_torque
from ..identification.result_file import SavedResult
from ..robot.robot import Robot

Array = NDArray[np.float64]
# Pieces that follow each other within so many steps are one recording on the page.
_CLOSE_STEPS = 3.0
# Recordings of their own are drawn apart by this share of all that is drawn.
_APART = 0.02


@dataclass(frozen=True)
class Method:
    """An estimator of the study, and how it ended."""

    name: str
    converged: bool
    message: str
    iterations: int
    seconds: float
    feasible: bool


@dataclass(frozen=True, eq=False)
class Subject:
    """All that the sections of a report are made of."""

    estimate: Estimate
    verdict: str
    held_out: str
    nominal: Validation | None  # the model as it was, on the data that were learnt from
    validations: Mapping[str, Validation]
    methods: tuple[Method, ...]
    failures: Mapping[str, str]
    notes: tuple[str, ...]
    training: tuple[Experiment, ...]
    testing: tuple[Experiment, ...]
    truth: Truth | None
    blind: tuple[str, ...] = ()  # combinations of base parameters that the data do not show
    command: str = ""
    missing: tuple[str, ...] = ()  # what could not be read again, and so is not on the page
    others: Mapping[str, Estimate] = field(default_factory=dict)  # of the other methods, where they are at hand

    @property
    def robot(self) -> Robot:
        """The robot as its model has it."""
        return self.estimate.model.robot

    @property
    def validation(self) -> Validation | None:
        return self.validations.get(self.estimate.method)

    @property
    def true_parameters(self) -> Array | None:
        """All parameters as a simulation had them."""
        if self.truth is None:
            return None
        for one in self.training:
            if isinstance(one.recording, Recording):
                return true_parameters(self.estimate, one.recording.about)
        return None


def subject_of(outcome: Outcome, truth: Truth | None = None, command: str = "") -> Subject:
    """An outcome as a report tells it."""
    methods = (
        Method(name, one.converged, one.message, one.iterations, one.seconds, not one.invalid)
        for name, one in outcome.estimates.items()
    )
    return Subject(
        estimate=outcome.estimate,
        verdict=outcome.verdict,
        held_out=outcome.held_out,
        nominal=outcome.nominal,
        validations=outcome.validations,
        methods=tuple(methods),
        failures=outcome.failures,
        notes=outcome.notes,
        training=outcome.training,
        testing=outcome.testing,
        truth=truth,
        blind=tuple(map(str, outcome.estimate.data_set.blind)),
        command=command,
        others=outcome.estimates,
    )


def _methods(saved: SavedResult) -> tuple[Method, ...]:
    found, listed = saved.estimate, saved.content.get("methods")
    if not isinstance(listed, Mapping):  # a result of one method, written from Python
        return (
            Method(
                found.method, found.converged, found.message, found.iterations, found.seconds, not found.invalid
            ),
        )  # fmt: skip
    try:
        return tuple(
            Method(
                str(name), bool(one["converged"]), str(one["message"]), int(one["iterations"]), float(one["seconds"]),
                bool(one["feasible"]),
            )
            for name, one in listed.items()
        )  # fmt: skip
    except (KeyError, TypeError, ValueError):
        raise DataError(f"{saved.path}: 'methods' is not as it was written") from None


def _texts(content: Mapping[str, object], key: str) -> tuple[str, ...]:
    given = content.get(key)
    return tuple(map(str, given)) if isinstance(given, list) else ()


def subject_of_saved(saved: SavedResult) -> Subject:
    """A result file as a report tells it, with those of its recordings that are still what they were."""
    found, content, again = saved.estimate, saved.content, read_again(saved)
    validations, failures = content.get("validation"), content.get("failures")
    untold = content.get("not_told_apart")
    nominal = content.get("nominal_on_training_data")
    return Subject(
        estimate=found,
        verdict=str(content.get("verdict") or f"{found.method}: the result says of no validation"),
        held_out=str(content.get("held_out") or "nothing"),
        nominal=None if nominal is None else validation_from(nominal),
        validations={
            str(name): validation_from(one)
            for name, one in (validations if isinstance(validations, dict) else {}).items()
        },
        methods=_methods(saved),
        failures={str(name): str(why) for name, why in (failures if isinstance(failures, dict) else {}).items()},
        notes=(*saved.notes, *_texts(content, "notes")),
        training=again.training,
        testing=again.testing,
        truth=truth_from(content.get("truth")),
        blind=_texts(untold, "not_shown_by_the_data") if isinstance(untold, dict) else (),
        command=str(content.get("command") or ""),
        missing=again.missing,
        others={found.method: found},
    )


@dataclass(frozen=True, eq=False)
class Piece:
    """A stretch of a recording, where it stands on the page's time axis, and what the model says of it."""

    name: str
    held_out: bool
    recording: Recording
    t: Array  # on the page
    predicted: Array
    nominal: Array
    use: NDArray[np.bool_]

    @property
    def residual(self) -> Array:
        """Measured less predicted torque; NaN where a row does not count."""
        return np.where(self.use, self.recording.tau - self.predicted, np.nan)


def _follows(before: Recording, after: Recording) -> bool:
    gap = after.t[0] - before.t[-1]
    same = before.about.get("source") == after.about.get("source")
    return bool(same and 0 < gap <= _CLOSE_STEPS / max(before.rate_hz, 1e-12))


def _in_order(subject: Subject) -> Iterable[tuple[Experiment, bool, bool]]:
    """Pieces as they are drawn: each, whether it was held out, and whether it goes on where the last one ended."""
    left = [one for one in subject.testing if isinstance(one.recording, Recording)]
    for one in subject.training:
        if not isinstance(one.recording, Recording):
            continue
        yield one, False, False
        for other in left:
            assert isinstance(other.recording, Recording)
            if _follows(one.recording, other.recording):
                left.remove(other)
                yield other, True, True
                break
    for other in left:
        yield other, True, False


def pieces_of(subject: Subject) -> tuple[Piece, ...]:
    """Every stretch of data with measured and predicted torque, end to end in time."""
    estimate, made, end = subject.estimate, list[Piece](), 0.0
    ordered = list(_in_order(subject))
    whole = sum(one.recording.duration for one, *_ in ordered if isinstance(one.recording, Recording))
    for one, held_out, goes_on in ordered:
        recording = one.recording
        assert isinstance(recording, Recording)
        step = 1.0 / recording.rate_hz if len(recording) > 1 else 0.0
        start = end + (step if goes_on else _APART * whole if made else 0.0)
        t = recording.t - recording.t[0] + start
        name = str(recording.about.get("source", "recording"))
        predicted = sliced_torque(estimate.model, estimate.parameters, recording, one.load)
        nominal = sliced_torque(estimate.model, estimate.model.nominal, recording, one.load)
        made.append(Piece(name, held_out, recording, t, predicted, nominal, counted(recording)))
        end = float(t[-1]) if len(t) else end
    return tuple(made)


def judged(pieces: Sequence[Piece]) -> tuple[tuple[Piece, ...], str]:
    """The pieces that residuals are looked at on: those held out where there are any."""
    test = tuple(piece for piece in pieces if piece.held_out)
    return (test, "held-out data") if test else (tuple(pieces), "the data that were learnt from")
