"""One face for all recursive estimators: `init` makes a state, `step` takes a sample and gives the next state.

    state = init(robot, EKF())
    for sample in samples:
        state = step(state, sample)
    print(found(state))

Both are pure: an older state can be stepped again, and one that was saved goes on after a restart bit for bit.
"""

import json
import os
import tempfile
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ...compiled import one_blas_thread
from ...dynamics import BaseParameters, base_parameters, known_torque, regressor
from ...errors import DataError, OptionError
from ...robot.robot import Robot
from . import recursive
from .coordinates import Base
from .kalman import Array, Gaussian
from .particles import Cloud
from .prior import parameter_covariance
from .recursive import RecursiveState
from .settings import RLS, Filter, Settings, as_dict, from_dict
from .square_root import RootGaussian
from .tracking import TORQUE_NOISE, Instant, JointTracking, ParameterTracking, per_joint, tracking, usual_torque

FORMAT = "steelyard online state 1"


class Sample(NamedTuple):
    """What a robot says at an instant; filters on the joint state need no rates."""

    t: float
    q: Array
    tau: Array
    qd: Array | None = None
    qdd: Array | None = None


@dataclass(frozen=True, eq=False)
class RowTracking:
    """Recursive least squares on the rows tau − tau_known = Y_kept β of a sample."""

    robot: Robot
    settings: RLS
    base: BaseParameters
    noise: Array

    def begin(self) -> RecursiveState:
        settings, beta = self.settings, self.base.reduce(self.robot.parameters)
        if settings.prior is not None:
            return recursive.start(beta, np.sqrt(settings.prior), self.robot.n)
        B = self.base.projection
        return recursive.start_from(beta, B @ parameter_covariance(self.robot, settings.relative) @ B.T, self.robot.n)

    def advance(self, belief: RecursiveState, now: Instant) -> RecursiveState:
        if not (np.isfinite(now.qd).all() and np.isfinite(now.qdd).all()):
            raise DataError(
                "recursive least squares needs q̇ and q̈ of every sample; fill them in (see `CausalRates`), or take a "
                "filter on the joint state"
            )
        rows = self.base.columns(regressor(self.robot, now.q, now.qd, now.qdd))
        values = now.tau - known_torque(self.robot, now.q, now.qd, now.qdd)
        settings = self.settings
        return recursive.update(belief, rows, values, self.noise, settings.forgetting, settings.directional)


Plan = RowTracking | ParameterTracking | JointTracking
AnyBelief = RecursiveState | Gaussian | RootGaussian | Cloud
_BELIEFS: dict[str, type[Any]] = {cls.__name__: cls for cls in (RecursiveState, Gaussian, RootGaussian, Cloud)}


@dataclass(frozen=True, eq=False)
class OnlineState:
    """Everything that the next step depends on. `plan` is what does not change from step to step."""

    plan: Plan
    belief: AnyBelief
    begun: float = float("nan")  # s, the time of the first sample
    t: float = float("nan")  # s, of the last sample
    tau: Array | None = None  # of the last sample
    samples: int = 0


def _row_tracking(robot: Robot, settings: RLS) -> RowTracking:
    noise = per_joint(settings.noise, TORQUE_NOISE * usual_torque(robot), "noise")
    return RowTracking(robot, settings, base_parameters(robot), noise)


def init(robot: Robot, settings: Settings) -> OnlineState:
    """The state before the first sample: the robot's nominal parameters and how far they may be wrong."""
    if isinstance(settings, RLS):
        rows = _row_tracking(robot, settings)
        return OnlineState(rows, rows.begin())
    if not isinstance(settings, Filter):
        raise OptionError(f"{type(settings).__name__} is no recursive estimator; take RLS(), EKF(), UKF(), …")
    plan = tracking(robot, settings)
    return OnlineState(plan, plan.begin(np.random.default_rng(getattr(settings, "seed", 0))))


@lru_cache(maxsize=64)
def _nothing(n: int) -> Array:
    missing = np.full(n, np.nan)
    missing.setflags(write=False)
    return missing


def _vector(n: int, name: str, x: Array | None) -> Array:
    if x is None:
        return _nothing(n)
    values = np.ascontiguousarray(x, dtype=np.float64)
    if values.shape != (n,):
        raise DataError(f"{name} of a sample has shape {values.shape}; the robot has {n} joints")
    return values


def _instant(state: OnlineState, sample: Sample) -> Instant:
    n = state.plan.robot.n
    if not np.isfinite(sample.t):
        raise DataError(f"the time of a sample is {sample.t}; it must be a finite number")
    if sample.t <= state.t:
        raise DataError(f"time does not advance: {state.t:.6f} -> {sample.t:.6f} s; leave such samples out")
    named = (("q", sample.q), ("tau", sample.tau), ("qd", sample.qd), ("qdd", sample.qdd))
    return Instant(*(_vector(n, name, x) for name, x in named))


def step(state: OnlineState, sample: Sample) -> OnlineState:
    """The state after one more sample."""
    with one_blas_thread():  # at these sizes threads wait for each other longer than they work
        return _stepped(state, _instant(state, sample), float(sample.t))


def _stepped(state: OnlineState, now: Instant, t: float) -> OnlineState:
    plan, first = state.plan, state.samples == 0
    if isinstance(plan, RowTracking):
        belief: AnyBelief = plan.advance(state.belief, now)  # type: ignore[arg-type]
        return replace(state, belief=belief, begun=t if first else state.begun, t=t, samples=state.samples + 1)
    if first:
        placed = plan.placed(state.belief, now) if isinstance(plan, JointTracking) else state.belief  # type: ignore[arg-type]
        return OnlineState(plan, placed, t, t, now.tau, 1)
    assert state.tau is not None
    tau = state.tau if plan.settings.torque == "held" else 0.5 * (state.tau + now.tau)
    belief = plan.advance(state.belief, now, tau, t - state.t, t - state.begun)  # type: ignore[arg-type]
    return OnlineState(plan, belief, state.begun, t, now.tau, state.samples + 1)


@dataclass(frozen=True, eq=False)
class Found:
    """Parameters at an instant, in the robot's order and as base parameters with their covariance."""

    names: tuple[str, ...]
    parameters: Array
    base_names: tuple[str, ...]
    base_parameters: Array
    base_covariance: Array

    @property
    def base_deviation(self) -> Array:
        return np.sqrt(np.maximum(np.diag(self.base_covariance), 0.0))


@lru_cache(maxsize=8)
def _base_of(robot: Robot) -> BaseParameters:
    return base_parameters(robot)


def found(state: OnlineState) -> Found:
    """What a state says of the parameters."""
    plan, belief = state.plan, state.belief
    if isinstance(plan, RowTracking):
        assert isinstance(belief, RecursiveState)
        base, beta, covariance = plan.base, belief.estimate, belief.covariance
        theta = base.expand(beta, plan.robot.parameters)
        return Found(plan.robot.parameter_names, theta, base.names, beta, covariance)
    assert not isinstance(belief, RecursiveState)
    return found_in(plan, belief)


def found_in(plan: ParameterTracking | JointTracking, belief: Gaussian | RootGaussian | Cloud) -> Found:
    """What a filter's belief says of the parameters."""
    robot = plan.robot
    xi, P = belief.mean[plan.lead :], belief.covariance[plan.lead :, plan.lead :]
    base = plan.coordinates.base if isinstance(plan.coordinates, Base) else _base_of(robot)
    theta = plan.coordinates.theta(xi)
    J = base.projection @ plan.coordinates.jacobian(xi)
    return Found(robot.parameter_names, theta, base.names, base.reduce(theta), J @ P @ J.T)


def save_state(state: OnlineState, path: str | Path) -> Path:
    """Write a state as NPZ, whole or not at all."""
    path = Path(path)
    if path.suffix.lower() != ".npz" or not path.parent.is_dir():
        raise OptionError(f"{path}: states are written as .npz into a folder that exists")
    arrays: dict[str, Any] = {f"belief.{name}": value for name, value in state.belief._asdict().items()}
    arrays |= {"clock": np.array([state.begun, state.t]), "samples": np.array(state.samples)}
    if state.tau is not None:
        arrays["tau"] = state.tau
    arrays |= {
        "format": np.array(FORMAT),
        "belief": np.array(type(state.belief).__name__),
        "settings": np.array(json.dumps(as_dict(state.plan.settings))),
        "names": np.array(state.plan.robot.parameter_names),
        "nominal": state.plan.robot.parameters,
    }
    handle, temporary = tempfile.mkstemp(prefix=".state-", suffix=".npz", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez(file, **arrays)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except OSError as error:
        Path(temporary).unlink(missing_ok=True)
        raise OptionError(f"{path} cannot be written: {error.strerror or error}") from None
    return path


def load_state(path: str | Path, robot: Robot) -> OnlineState:
    """Read what `save_state` wrote, for the robot that it was made with."""
    path = Path(path)
    if not path.is_file():
        raise DataError(f"{path}: no such file")
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except Exception as error:  # a truncated archive fails in many ways inside zipfile and NumPy
        raise DataError(f"{path} cannot be read as NPZ: {type(error).__name__}: {error}") from None
    if str(arrays.get("format")) != FORMAT:
        raise DataError(f"{path} is no state of an online estimator: it lacks format '{FORMAT}'")
    if tuple(arrays["names"]) != robot.parameter_names or not np.array_equal(arrays["nominal"], robot.parameters):
        raise DataError(f"{path} belongs to a robot with other parameters than {robot.name} has; load that one")
    fresh = init(robot, from_dict(json.loads(str(arrays["settings"]))))
    kind = _BELIEFS[str(arrays["belief"])]
    belief = kind(*(arrays[f"belief.{name}"] for name in kind._fields))
    begun, t = (float(x) for x in arrays["clock"])
    return OnlineState(fresh.plan, belief, begun, t, arrays.get("tau"), int(arrays["samples"]))
