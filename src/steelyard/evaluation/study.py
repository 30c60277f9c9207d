"""One identification from beginning to end: prepare, split, estimate by each method, judge on what was held out."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.decimation import Decimation
from ..data.filters import moving
from ..data.preprocess import ROWS_A_CYCLE, automatic_decimation
from ..data.quality import inspect_recording
from ..data.recording import Recording
from ..data.rows import standstill_speeds
from ..dynamics import base_parameters
from ..errors import DataError, OptionError
from ..identification.alignment import aligned, find_delay, shifted
from ..identification.estimate import Estimate
from ..identification.estimators import WLS
from ..identification.fit import Estimator, Progress, silent
from ..identification.identify import identify_problem, prepare
from ..identification.model import Experiment, LinearModel
from ..identification.problem import DataSet, Problem, build_problem
from ..identification.selection import friction_worth_having
from ..identification.terms import Term
from ..robot.robot import Robot
from ..robot.uncarried import UNMODELLED
from .validation import Validation, contradictions, every_row, score

# Friction columns that are tried where the user leaves the choice.
TRIED = ("coulomb", "offset")
# Decimation leaves at least so many torques a base parameter.
_ROWS_A_PARAMETER = 100
# Fewer rows than these judge nothing.
_LEAST_HELD_OUT = 10
# Torque errors that differ by less than this share tell no method from another.
_TIE = 0.01


@dataclass(frozen=True, eq=False)
class Plan:
    """What is asked of a study."""

    methods: tuple[Estimator, ...]
    terms: tuple[Term, ...] = ()
    fixed: Mapping[str, float] = field(default_factory=dict)
    preprocessing: Any = "auto"
    decimation: Decimation | str | None = "auto"
    train_share: float = 0.8  # of each recording's motion, in time, where no recording for validation is given
    train_span: tuple[float, float] | None = None  # s from the start of each recording; learn from this alone
    test_span: tuple[float, float] | None = None  # and judge on this
    every_row: bool = False  # judge on every row, standstill included
    choose_friction: bool = False
    delay: float | str = "auto"  # s that the torque is recorded after the motion; found from the data unless given

    def __post_init__(self) -> None:
        if not self.methods:
            raise OptionError("no estimator was asked for")
        if not 0.1 <= self.train_share <= 1.0:
            raise OptionError(f"the training share is {self.train_share}; give 0.1 to 1")
        for span in (self.train_span, self.test_span):
            if span is not None and not 0 <= span[0] < span[1]:
                raise OptionError(f"the span {span[0]:g} to {span[1]:g} s is none; give two times, the later one last")


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a study found."""

    robot: Robot
    problem: Problem
    training: tuple[Experiment, ...]
    testing: tuple[Experiment, ...]
    held_out: str  # in words: what the methods were judged on
    nominal: Validation  # the model as it was, on the training data: does it fit the recording at all?
    estimates: Mapping[str, Estimate]
    validations: Mapping[str, Validation]
    failures: Mapping[str, str]
    best: str
    notes: tuple[str, ...]
    faults: tuple[str, ...] = ()  # of the recordings, or of the model, that make answers wrong

    @property
    def estimate(self) -> Estimate:
        return self.estimates[self.best]

    @property
    def solved(self) -> Problem:
        """The regression of the best answer, with the terms that it found."""
        return self.problem.solved_by(self.estimate.model)

    @cached_property
    def held_out_data(self) -> DataSet | None:
        """What the regression of the held-out recordings says of itself."""
        if not self.testing:
            return None
        try:
            return replace(self.problem, experiments=self.testing, decimation=None, given=None, _kept={}).data_set
        except DataError:
            return None  # too few rows for a regression of their own

    @property
    def validation(self) -> Validation | None:
        return self.validations.get(self.best)

    @property
    def verdict(self) -> str:
        """One sentence on whether to use the result."""
        found, judged = self.estimate, self.validation
        said = f"{found.method}: " + (judged.verdict if judged is not None else "nothing was held out to judge it by")
        if not found.converged:
            said += f"; it did NOT converge: {found.message}"
        elif found.data_set.rank < found.data_set.base_rank:
            said += f"; {found.data_set.base_rank - found.data_set.rank} base parameters are not shown by the data"
        if found.invalid:
            bodies = len({reason.subject for reason in found.invalid})
            said += f"; not physical in {bodies} places (identify with --physical for a model file)"
        if self.faults:
            more = f" and {len(self.faults) - 1} more" if len(self.faults) > 1 else ""
            said += f"; BEFORE YOU USE IT look at what `steelyard inspect` finds: {self.faults[0]}{more}"
        return said


def faults_of(recordings: Sequence[Recording | Experiment], robot: Robot) -> tuple[str, ...]:
    """What an inspection of recordings finds that makes results wrong, and torques that were cut off."""
    found: list[str] = []
    for given in recordings:
        recording = given.recording if isinstance(given, Experiment) else given
        findings = inspect_recording(recording, robot).findings if isinstance(recording, Recording) else ()
        wrong = [one for one in findings if one.severity == "error" or one.what == "saturated"]
        found += [f"{one.joint}: {one.text}" if one.joint else one.text for one in wrong]
    return tuple(dict.fromkeys(found))


def _moving(recording: Recording) -> NDArray[np.bool_]:
    """The samples in which any joint moves, (T,); all of them where nothing is known of it."""
    if recording.qd is None:
        return np.ones(len(recording), dtype=bool)
    moving = np.asarray((np.abs(recording.qd) > standstill_speeds(recording.qd)).any(axis=1))
    return moving if np.any(moving) else np.ones(len(recording), dtype=bool)


def split_in_time(recording: Recording, share: float) -> tuple[Recording, Recording | None]:
    """The part of a recording with the first share of its motion to learn from, the rest to judge by.

    Never by shuffled rows, and by motion: an arm that ends in standing still would be judged by standing still.
    """
    moved = np.cumsum(_moving(recording))
    cut = int(np.searchsorted(moved, share * moved[-1], side="left")) + 1 if len(moved) else 0
    if share >= 1.0 or len(recording) - cut < 10:
        return recording, None
    return recording.between(0, cut), recording.between(cut, len(recording))


def within(one: Experiment, span: tuple[float, float]) -> Experiment:
    """The part of an experiment between two times, counted from its start."""
    recording = one.recording
    assert isinstance(recording, Recording)
    start = recording.t[0] if one.measured is None else one.measured.t[0]
    first, last = np.searchsorted(recording.t, [start + span[0], start + span[1]])
    if last - first < _LEAST_HELD_OUT:
        raise OptionError(
            f"the recording has {last - first} rows between {span[0]:g} and {span[1]:g} s; "
            f"it lasts {recording.duration:.4g} s"
        )
    before = one.measured
    if before is not None:
        ends = np.searchsorted(before.t, [start + span[0], start + span[1]])
        before = before.between(*ends.tolist())
    return replace(one, recording=recording.between(int(first), int(last)), measured=before)


def parts_in_time(one: Experiment, share: float) -> tuple[Experiment, Experiment | None]:
    """An experiment cut in time, what was measured at the same moment as what was made ready of it."""
    assert isinstance(one.recording, Recording)
    first, rest = split_in_time(one.recording, share)
    if rest is None:
        return one, None
    before = after = one.measured
    if one.measured is not None:
        cut = int(np.searchsorted(one.measured.t, rest.t[0]))
        before, after = one.measured.between(0, cut), one.measured.between(cut, len(one.measured))
    return replace(one, recording=first, measured=before), replace(one, recording=rest, measured=after)


def divided(
    prepared: Sequence[Experiment], held_out: Sequence[Experiment], plan: Plan
) -> tuple[list[Experiment], list[Experiment], str]:
    """What to learn from, what to judge on, and the latter in words."""
    training, testing, words = list(prepared), list(held_out), "recordings that were not used"
    if plan.test_span is not None:
        testing = [within(one, plan.test_span) for one in held_out or prepared]
        words = f"{plan.test_span[0]:g} to {plan.test_span[1]:g} s"
    if plan.train_span is not None:
        training = [within(one, plan.train_span) for one in prepared]
    elif plan.test_span is not None and not held_out:
        raise OptionError("a span to judge on needs one to learn from beside it; give both")
    if testing:
        return training, testing, words
    pairs = [parts_in_time(one, plan.train_share) for one in training]
    testing = [rest for _, rest in pairs if rest is not None]
    words = f"the last {100 * (1 - plan.train_share):.0f} % of the motion" if testing else "nothing"
    return [first for first, _ in pairs], testing, words


def _check_joints(robot: Robot, recording: Recording) -> None:
    if recording.n != robot.n:
        raise DataError(
            f"the recording has {recording.n} joints ({', '.join(recording.joints)}), {robot.name} has {robot.n} "
            f"({', '.join(robot.dof_names)}); lock joints of the model (--lock), or choose columns by a mapping file"
        )


def decimation_for(
    wanted: Decimation | str | None, recordings: Sequence[Experiment], rank: int
) -> tuple[Decimation | None, list[str]]:
    """The parallel low-pass that is asked for, or, where that is left open, one that suits the recordings."""
    if wanted is None or isinstance(wanted, Decimation):
        return wanted, []
    found = [automatic_decimation(x.recording) for x in recordings if isinstance(x.recording, Recording)]
    if not found or any(one is None for one in found):
        return None, []
    # The widest band and the smallest step of all recordings, and rows enough to tell noise from parameters.
    step = min(d.factor for d in found if d)
    torques = sum(x.recording.n * len(x.recording) for x in recordings if isinstance(x.recording, Recording))
    step = min(step, int(torques / (_ROWS_A_PARAMETER * rank)))
    if step < 2:
        return None, []
    slowest = min(x.rate_hz for x in recordings)
    chosen = Decimation(max(*(d.cutoff_hz for d in found if d), slowest / (ROWS_A_CYCLE * step)), step)
    return chosen, [f"parallel low-pass at {chosen.cutoff_hz:.3g} Hz, then every {chosen.factor}th row"]


def _with_friction(robot: Robot, chosen: Sequence[str]) -> Robot:
    own = [prop for prop in robot.layout.properties if prop not in TRIED]
    return robot.with_layout(properties=tuple(own) + tuple(chosen))


def _check_motion(experiments: Sequence[Experiment]) -> None:
    """Recordings in which nothing moves fit any parameters, and tell none."""
    positions = [one.recording.q for one in experiments if isinstance(one.recording, Recording)]
    if not moving(np.vstack(positions)):
        raise DataError(
            "no joint moves in what is to be learned from, so that no parameter can be told; record a motion such as "
            "`steelyard excite` designs"
        )


def _refuse_the_same(
    learnt: Sequence[Recording | Experiment], judged: Sequence[Recording | Experiment], plan: Plan
) -> None:
    """What is learnt from judges nothing, unless spans of it are told apart."""

    def prints(given: Sequence[Recording | Experiment]) -> dict[str, str]:
        abouts = [getattr(one.recording if isinstance(one, Experiment) else one, "about", {}) for one in given]
        return {str(about["sha256"]): str(about.get("source")) for about in abouts if about.get("sha256")}

    twice = set(prints(learnt)) & set(prints(judged))
    if twice and plan.train_span is None and plan.test_span is None:
        name = prints(judged)[sorted(twice)[0]]
        raise OptionError(
            f"{name} is learnt from and cannot judge what it taught; give another recording, leave it out to be judged "
            "by the end of the motion, or give two spans of it (--train, --test)"
        )


def run_study(
    robot: Robot,
    recordings: Sequence[Recording | Experiment],
    plan: Plan,
    held_out: Sequence[Recording | Experiment] = (),
    progress: Progress = silent,
    known: Callable[[Problem, Estimator], Estimate | None] = lambda problem, method: None,
    found_by: Callable[[Problem, Estimator, Estimate], None] = lambda problem, method, found: None,
) -> Outcome:
    """Identify by every method of a plan and judge each on recordings, or the end of them, that it has not seen.

    `known` answers what was found before, and `found_by` is told of everything that is found.
    """
    _refuse_the_same(recordings, held_out, plan)
    notes = [f"{robot.name}: {note}" for note in robot.notes if UNMODELLED in note]

    def ready(given: Recording | Experiment, what: str) -> Experiment:
        experiment = given if isinstance(given, Experiment) else Experiment(given)
        if not isinstance(experiment.recording, Recording):
            raise DataError("a study takes recordings in memory; give streams to identify()")
        _check_joints(robot, experiment.recording)
        progress(what, 0.0)
        return replace(
            experiment,
            recording=prepare(experiment.recording, robot, plan.preprocessing),
            measured=experiment.measured or experiment.recording,
        )

    prepared = [ready(one, "preparing the recording") for one in recordings]
    judged = [ready(one, "preparing what is held out") for one in held_out]
    _check_motion(prepared)
    training, testing, words = divided(prepared, judged, plan)
    progress("comparing the model as it is with the recorded torque", 0.0)
    as_it_is = LinearModel(robot)
    nominal = score(as_it_is, as_it_is.nominal, training)
    notes += contradictions(nominal)
    if plan.every_row:
        testing = [replace(one, recording=every_row(one.recording)) for one in testing]  # type: ignore[arg-type]
    decimation, said = decimation_for(plan.decimation, training, base_parameters(_with_friction(robot, TRIED)).rank)
    notes += said

    rates = [one.recording.qd for one in training if isinstance(one.recording, Recording)]
    dead_zone = np.max([standstill_speeds(qd) for qd in rates if qd is not None], axis=0)

    def problem_for(chosen: Robot) -> Problem:
        return build_problem(
            chosen, training, terms=plan.terms, fixed=plan.fixed, decimation=decimation, dead_zone=dead_zone
        )

    problem = problem_for(_with_friction(robot, TRIED) if plan.choose_friction else robot)
    delay = 0.0
    if plan.delay == "auto":
        progress("looking for a delay between torque and motion", 0.0)
        found_delay = find_delay(problem)
        if found_delay.believed:
            delay = found_delay.seconds
            notes.append(
                f"the torque is recorded {1e3 * abs(delay):.3g} ± {1e3 * found_delay.deviation:.1g} ms "
                f"{'after' if delay > 0 else 'before'} the motion it belongs to; that was taken out"
            )
    else:
        delay = float(plan.delay)
    if delay:
        problem = aligned(problem, delay)
        training = list(problem.experiments)
        testing = [replace(one, recording=shifted(one.recording, delay)) for one in testing]  # type: ignore[arg-type]
    if plan.choose_friction:
        progress("choosing friction columns", 0.0)
        worth = friction_worth_having(problem, identify_problem(problem, WLS()), TRIED)
        notes.append(f"friction columns that the data call for: {', '.join(worth) or 'none'}")
        if worth != TRIED:
            problem = problem_for(_with_friction(robot, worth))
        robot = _with_friction(robot, worth)

    estimates: dict[str, Estimate] = {}
    validations: dict[str, Validation] = {}
    failures: dict[str, str] = {}
    for k, method in enumerate(plan.methods):
        progress(f"identifying by {method.name}", k / len(plan.methods))
        found = known(problem, method)
        if found is None:
            try:
                found = identify_problem(problem, method, about={"torque_delay_s": delay}, progress=progress)
            except (DataError, OptionError) as error:
                if len(plan.methods) == 1:
                    raise
                failures[method.name] = str(error)
                continue
            found_by(problem, method, found)
        estimates[method.name] = found
        if testing:
            validations[method.name] = score(found.model, found.parameters, testing)
    if not estimates:
        raise DataError("no method came to an answer: " + "; ".join(f"{m}: {why}" for m, why in failures.items()))

    best = _best(estimates, validations)
    return Outcome(
        robot=robot,
        problem=problem,
        training=tuple(training),
        testing=tuple(testing),
        held_out=words,
        nominal=nominal,
        estimates=estimates,
        validations=validations,
        failures=failures,
        best=best,
        notes=tuple(notes),
    )


def _best(estimates: Mapping[str, Estimate], validations: Mapping[str, Validation]) -> str:
    """Of the methods that converged, one that predicts best; where that is a tie, one whose bodies can exist."""

    def error(name: str) -> float:
        return validations[name].relative if name in validations else 0.0

    sure = [name for name, found in estimates.items() if found.converged] or list(estimates)
    tied = [name for name in sure if error(name) <= (1.0 + _TIE) * min(map(error, sure))]
    return min(tied, key=lambda name: (bool(estimates[name].invalid), error(name)))


@dataclass(frozen=True)
class Fold:
    """A piece of the recordings that was held out, and how well it was predicted from the others."""

    seconds: tuple[float, float]  # of its recording
    relative: float
    nominal_relative: float


def cross_validate(
    robot: Robot,
    recordings: Sequence[Recording | Experiment],
    method: Estimator,
    folds: int = 5,
    plan: Plan | None = None,
    progress: Progress = silent,
) -> tuple[Fold, ...]:
    """Each piece of the recordings in time, predicted by what was learnt from all others."""
    if folds < 2:
        raise OptionError(f"cross-validation with {folds} folds; give 2 or more")
    plan = Plan(methods=(method,)) if plan is None else plan
    pieces: list[Experiment] = []
    for given in recordings:
        one = given if isinstance(given, Experiment) else Experiment(given)
        if not isinstance(one.recording, Recording):
            raise DataError("cross-validation takes recordings in memory")
        _check_joints(robot, one.recording)
        ready = prepare(one.recording, robot, plan.preprocessing)
        edges = np.linspace(0, len(ready), folds + 1).astype(int)
        pieces += [replace(one, recording=ready.between(a, b)) for a, b in pairwise(edges.tolist())]
    found = []
    for k, held in enumerate(pieces):
        progress("cross-validating", k / len(pieces))
        others = [piece for i, piece in enumerate(pieces) if i != k]
        decimation, _ = decimation_for(plan.decimation, others, base_parameters(robot).rank)
        problem = build_problem(robot, others, terms=plan.terms, fixed=plan.fixed, decimation=decimation)
        judged = score(problem.model, identify_problem(problem, method).parameters, [held])
        assert isinstance(held.recording, Recording)
        span = (float(held.recording.t[0]), float(held.recording.t[-1]))
        found.append(Fold(span, judged.relative, judged.nominal_relative))
    return tuple(found)
