"""Pieces of motion that can be simulated again: a whole recording under control, or short stretches under its torques.

A piece is given parameters, and a start where that is sought too; it answers what would have been measured then.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicHermiteSpline, CubicSpline

from ...data.recording import Recording
from ...errors import DataError, OptionError
from ...robot.robot import Robot
from ...simulation.controllers import Controller
from ...simulation.kernels.loop import KEPT
from ...simulation.loop import ClosedLoop, SimulationError
from ...simulation.tangent import tangents
from ..model import Experiment, LinearModel, Load
from .loops import Loop, loop_of, on_ticks, start_of, starts_at_rest

Array = NDArray[np.float64]
_CHANNELS = 6  # of KEPT, those that a trace has


class Trace(NamedTuple):
    """What a simulation gives at the times of a recording; rows from `reached` on are not numbers.

    `q_seen` and `qd_seen` are what the sensors say, delay and differences of positions included.
    """

    q: Array
    qd: Array
    qdd: Array
    tau: Array
    q_seen: Array
    qd_seen: Array
    reached: int

    @classmethod
    def of(cls, out: Array, reached: int) -> "Trace":
        """From a block (4 or 6, T, n)."""
        seen = out[4:6] if len(out) > 4 else out[:2]
        return cls(out[0], out[1], out[2], out[3], seen[0], seen[1], reached)


class Piece(Protocol):
    """What every piece answers."""

    @property
    def measured(self) -> Recording:
        """The rows that it stands for."""
        ...

    @property
    def start(self) -> Array | None:
        """(2 or 3, n) first guess of the start, where the start is sought; None where it is known."""
        ...

    @property
    def gains(self) -> Array | None:
        """(3, n) rows Kp, Ki, Kd of the controller, where there is one to be sought."""
        ...

    def run(self, theta: Array, start: Array | None = None, gains: Array | None = None) -> Trace: ...

    def tangent(
        self,
        trace: Trace,
        rows: int,
        theta: Array,
        start: Array | None,
        gains: Array | None,
        directions: Sequence[Array],
        names: Sequence[str],
        gain_moves: Sequence[tuple[int, int]],
    ) -> Array | None:
        """∂signals (rows, m, …) by directions of theta, moves of gains and the start; None where that is unknown."""
        ...

    def delayed(self, ticks: int) -> "Piece":
        """The same with another delay of the sensors."""
        ...


def acting(model: LinearModel, theta: Array, load: Load | None) -> Array:
    """Parameters of the robot with what it carries, from all parameters of a model."""
    own = theta[: model.robot.layout.size].copy()
    if load is None:
        return own
    names = [name for name, _ in model.loads]
    first = len(model.names) - 10 * len(names)
    carried = load.parameters
    if carried is None:
        k = first + 10 * names.index(load.name)
        carried = theta[k : k + 10]
    own[model.robot.layout.body(load.body)] += carried
    return own


def _acting_along(model: LinearModel, directions: Sequence[Array], load: Load | None) -> Array:
    """The same of directions, (own parameters, directions)."""
    still = acting(model, np.zeros(len(model.names)), load)
    return np.stack([acting(model, direction, load) - still for direction in directions], axis=1)


def _damped_at_the_end(robot: Robot, own: Array, step: float) -> Array:
    """Parameters (or directions of them, one a column) that act like these where a step takes damping at its end."""
    if step:
        own = own.copy()
        own[robot.layout.block("armature")] += step * own[robot.layout.block("damping")]
    return own


def _every_tick(loop: ClosedLoop, parameters: Array, start: Array | None, ticks: int) -> Array:
    """What a loop keeps at its first ticks, all of `KEPT` that sensors and drives know."""
    full = replace(loop, sample_hz=None)
    out = np.full((len(KEPT), full.samples, loop.robot.n), np.nan)
    try:
        full.execute(out, parameters, start=start)
    except SimulationError as error:
        ticks = min(ticks, int(np.searchsorted(full.t, error.time)))
    return np.ascontiguousarray(out[:_CHANNELS, :ticks])


def recording_of(experiment: Experiment) -> Recording:
    """What the sensors said over the time of an experiment, for estimators that simulate."""
    prepared = experiment.recording
    source = prepared if experiment.measured is None else experiment.measured
    if not (isinstance(source, Recording) and isinstance(prepared, Recording)):
        raise DataError("a recording that is streamed in blocks cannot be simulated again; load it whole")
    # Preprocessing or a split may have cut it.
    half = 0.5 / source.rate_hz
    first, last = np.searchsorted(source.t, [prepared.t[0] - half, prepared.t[-1] + half])
    if last - first < len(source):
        source = source.between(int(first), int(last))
    if not (np.isfinite(source.q).all() and np.isfinite(source.tau).all()):
        raise DataError("q or tau hold values that are not finite; repair the recording first")
    return source


def refuse_terms(model: LinearModel, name: str) -> None:
    """Simulations have the robot's own parameters and loads; a term would act in the regression alone."""
    if model.terms:
        named = ", ".join(n for term in model.terms for n in term.names(model.robot)[:1])
        raise OptionError(f"{name} simulates the robot's own parameters; leave out the terms ({named} …): --terms none")


def _at(times: Array, t: Array, out: Array, reached: int) -> Array:
    """Samples at other times: cubic where the motion is smooth, else by lines."""
    result = np.full((len(out), len(times), out.shape[2]), np.nan)
    inside = times <= t[max(reached - 1, 0)] + 1e-12
    if reached > 1:
        x = np.minimum(times[inside], t[reached - 1])
        for k in (0, 1):
            result[k, inside] = CubicHermiteSpline(t[:reached], out[k, :reached], out[k + 1, :reached])(x)
        for k in (2, 3, 5):
            for j in range(out.shape[2]):
                result[k, inside, j] = np.interp(x, t[:reached], out[k, :reached, j])
        result[4, inside] = CubicSpline(t[:reached], out[4, :reached])(x)
    return result


def _between_ticks(x: Array, ticks: Array) -> Array:
    """Rows at times in ticks, by lines."""
    before = np.clip(ticks.astype(int), 0, max(len(x) - 2, 0))
    after = np.minimum(before + 1, len(x) - 1)
    share = np.clip(ticks - before, 0.0, 1.0)[:, None, None]
    return np.asarray((1.0 - share) * x[before] + share * x[after])


@dataclass(frozen=True, eq=False)
class ClosedPiece:
    """A recording made under a controller that is known."""

    model: LinearModel
    measured: Recording
    load: Load | None
    loop: ClosedLoop
    times: Array  # s, since the start, at which traces are given
    free_start: bool = False
    damping_step: float = 0.0  # s; that of the simulation that made the recording, where it takes damping at its end
    _variants: dict[bytes, ClosedLoop] = field(default_factory=dict, repr=False)

    @property
    def start(self) -> Array | None:
        return np.asarray(self.loop.start) if self.free_start else None

    @property
    def gains(self) -> Array | None:
        return self.loop.controller.gains(self.loop.robot.n)

    @cached_property
    def _direct(self) -> bool:
        return len(self.times) <= self.loop.samples and bool(
            np.abs(self.loop.t[: len(self.times)] - self.times).max(initial=0.0) < 1e-3 * self.loop.dt
        )

    def _acting(self, theta: Array) -> Array:
        return _damped_at_the_end(self.model.robot, acting(self.model, theta, self.load), self.damping_step)

    def _with_gains(self, gains: Array) -> ClosedLoop:
        key = gains.tobytes()
        if key not in self._variants:
            controller = replace(self.loop.controller, kp=gains[0], ki=gains[1], kd=gains[2])
            if len(self._variants) > 8 * gains.size:
                self._variants.clear()
            self._variants[key] = replace(self.loop, controller=controller)
        return self._variants[key]

    def run(self, theta: Array, start: Array | None = None, gains: Array | None = None) -> Trace:
        loop = self.loop if gains is None else self._with_gains(gains)
        out = np.full((len(KEPT), loop.samples, loop.robot.n), np.nan)
        reached = loop.samples
        try:
            loop.execute(out, self._acting(theta), start=start)
        except SimulationError as error:
            reached = int(np.searchsorted(loop.t, error.time))
        out = out[:_CHANNELS]
        if not self._direct:
            out = _at(self.times, loop.t, out, reached)
            reached = int(np.isfinite(out[0, :, 0]).sum())
        out = out[:, : len(self.times)]
        reached = min(reached, len(self.times))
        out[:, reached:] = np.nan
        return Trace.of(out, reached)

    def tangent(
        self,
        trace: Trace,
        rows: int,
        theta: Array,
        start: Array | None,
        gains: Array | None,
        directions: Sequence[Array],
        names: Sequence[str],
        gain_moves: Sequence[tuple[int, int]],
    ) -> Array:
        loop = self.loop if gains is None else self._with_gains(gains)
        own = self._acting(theta)
        along = _acting_along(self.model, directions, self.load)
        direct = self._direct and loop.ticks_a_sample == 1
        if direct:
            motion = np.ascontiguousarray(np.stack(trace[:_CHANNELS])[:, :rows])
        else:
            last = int(np.ceil(self.times[rows - 1] * loop.control_hz - 1e-6))
            motion = _every_tick(loop, own, start, min(last + 1, loop.ticks))
        stride = loop.ticks_a_sample if self._direct else 1
        found = tangents(
            loop, loop.robot.with_parameters(own), motion,
            _damped_at_the_end(self.model.robot, along, self.damping_step), names,
            gain_moves, 0 if start is None else len(start), stride,
        )  # fmt: skip
        return found[:rows] if self._direct else _between_ticks(found, self.times[:rows] * loop.control_hz)

    def delayed(self, ticks: int) -> "ClosedPiece":
        return replace(self, loop=replace(self.loop, delay_ticks=ticks), _variants={})


def with_better_start(piece: ClosedPiece, theta: Array, trace: Trace) -> ClosedPiece:
    """A piece whose start, where it is not known, is moved by one step towards the measured positions."""
    start = piece.start
    if start is None:
        return piece
    rows = trace.reached
    nowhere = [np.zeros_like(theta)]
    S = piece.tangent(trace, rows, theta, start, None, nowhere, ["q"], [])[:, :, 1:].reshape(-1, start.size)
    step = np.linalg.lstsq(S, (piece.measured.q[:rows] - trace.q_seen[:rows]).ravel(), rcond=None)[0]
    return replace(piece, loop=replace(piece.loop, start=start + step.reshape(start.shape)), _variants={})


def closed_pieces(
    model: LinearModel, experiments: Sequence[Experiment], given: Loop, free_start: bool = False, as_made: bool = False
) -> list[ClosedPiece]:
    """A piece a recording, at the times at which it was measured; its start is sought where it is not known.

    `as_made` follows MuJoCo where it takes damping at the end of its steps; what compares torques with a regressor does
    not, which knows of no steps.
    """
    pieces = []
    for experiment in experiments:
        measured = recording_of(experiment)
        loop = loop_of(model.robot, measured, given)
        free = free_start or not starts_at_rest(measured)
        step = float(measured.about.get("damping_step", 0.0)) if as_made else 0.0
        pieces.append(ClosedPiece(model, measured, experiment.load, loop, measured.t - measured.t[0], free, step))
    return pieces


@dataclass(frozen=True, eq=False)
class OpenPiece:
    """A stretch of a recording, moved by the torques that were measured; its start is sought."""

    model: LinearModel
    measured: Recording
    load: Load | None
    loop: ClosedLoop
    start: Array
    gains: None = None

    def run(self, theta: Array, start: Array | None = None, gains: Array | None = None) -> Trace:
        out = np.full((4, self.loop.samples, self.loop.robot.n), np.nan)
        reached = self.loop.samples
        try:
            self.loop.execute(out, acting(self.model, theta, self.load), start=self.start if start is None else start)
        except SimulationError as error:
            reached = int(np.searchsorted(self.loop.t, error.time))
            out[:, reached:] = np.nan
        return Trace.of(out, reached)

    def tangent(
        self,
        trace: Trace,
        rows: int,
        theta: Array,
        start: Array | None,
        gains: Array | None,
        directions: Sequence[Array],
        names: Sequence[str],
        gain_moves: Sequence[tuple[int, int]],
    ) -> Array:
        loop, own = self.loop, acting(self.model, theta, self.load)
        begin = self.start if start is None else start
        motion = _every_tick(loop, own, begin, (rows - 1) * loop.ticks_a_sample + 1)
        return tangents(
            loop, loop.robot.with_parameters(own), motion, _acting_along(self.model, directions, self.load), names,
            (), 0 if start is None else len(start), loop.ticks_a_sample,
        )  # fmt: skip

    def delayed(self, ticks: int) -> "OpenPiece":
        raise OptionError("there is no controller whose delay could be sought; give the loop, or leave the delay out")


@dataclass(frozen=True)
class Shooting:
    """Multiple shooting: stretches of `horizon` seconds, each from a start of its own, under the measured torques.

    Torques are held from sample to sample where the drive did so, else joined by lines. Over a short horizon an
    unstable motion stays near its start, and noise of the torque has no time to add up.
    """

    horizon: float = 0.25  # s
    torque: str = "auto"  # "held", "lines", or "auto": held where the recording says it was sampled at every tick
    step: float = 1e-3  # s, the longest of the integrator

    def __post_init__(self) -> None:
        if not (np.isfinite(self.horizon) and self.horizon > 0):
            raise OptionError(f"the horizon of shooting is {self.horizon} s; it must be above zero")
        if self.torque not in ("auto", "held", "lines"):
            raise OptionError(f"no torque '{self.torque}' between samples; valid: auto, held, lines")
        if not (np.isfinite(self.step) and self.step > 0):
            raise OptionError(f"the step of shooting is {self.step} s; it must be above zero")

    def _is_held(self, measured: Recording) -> bool:
        if self.torque != "auto":
            return self.torque == "held"
        control = measured.about.get("control_hz")
        return control is not None and on_ticks(measured.t, float(control)) == 1

    def pieces(self, model: LinearModel, experiments: Sequence[Experiment]) -> list[OpenPiece]:
        return [piece for experiment in experiments for piece in self._of(model, experiment)]

    def _of(self, model: LinearModel, experiment: Experiment) -> list[OpenPiece]:
        measured = recording_of(experiment)
        rate = measured.rate_hz
        if on_ticks(measured.t, rate) != 1:
            raise DataError("shooting needs even sampling times; resample the recording first (Resample())")
        if self.horizon * rate < 1.0:
            raise OptionError(
                f"a horizon of {self.horizon:g} s is less than a sample of {rate:.4g} Hz; give a longer one"
            )
        rows = max(3, round(self.horizon * rate)) + 1
        if rows > len(measured):
            raise DataError(
                f"the recording lasts {measured.duration:.3g} s, the horizon is {self.horizon:g} s; shorten it"
            )
        # Torque acts over whole ticks, several a sample where the step asks for it or lines are to be followed.
        held = self._is_held(measured)
        ticks = max(1 if held else 4, int(np.ceil(1.0 / (rate * self.step) - 1e-9)))
        still = Controller(0.0, 0.0, limit=np.inf)
        pieces = []
        for first in range(0, len(measured) - rows + 1, rows - 1):
            part = measured.between(first, first + rows)
            torque = np.repeat(part.tau[:-1], ticks, axis=0)
            if not held:
                share = (np.tile(np.arange(ticks), rows - 1)[:, None] + 0.5) / ticks
                torque = torque + share * np.repeat(np.diff(part.tau, axis=0), ticks, axis=0)
            torque = np.vstack([torque, part.tau[-1:]])
            start = start_of(part)
            reference = np.zeros((3, len(torque), part.n))
            loop = ClosedLoop(
                model.robot, reference, still, rate * ticks, rate, start=start, velocity="measured", torque=torque
            )
            pieces.append(OpenPiece(model, part, experiment.load, loop, start))
        return pieces
