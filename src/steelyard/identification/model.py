"""`LinearModel`: torque as a regression, with what is known taken off and only independent columns left.

tau − tau_known = W beta,    W = [Y_kept, terms],    beta = [base parameters, parameters of the terms]
"""

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..data.recording import Recording
from ..dynamics import BaseParameters, base_parameters, known_torque, regressor
from ..errors import DataError, OptionError
from ..robot.parameters import INERTIAL, INERTIAL_UNITS
from ..robot.robot import Robot, frozen
from ..robot.states import random_states
from .readings import FRICTION_SCALE, ROTOR_ACCELERATION, ROTOR_RATE
from .terms import Term

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Load:
    """A body carried along while a recording was made, as parameters added to one of the robot's bodies.

    With `parameters` it is known; without, its ten parameters are identified under `name`.
    """

    body: str
    parameters: Array | None = None  # (10,) in the frame of the body
    name: str = "payload"


@dataclass(frozen=True, eq=False)
class Experiment:
    """A recording that is ready for regression (it has qd and qdd), and what the robot carried.

    `measured` is what it was made of: estimators that simulate compare with what the sensors said.
    """

    recording: Recording | Callable[[], Iterable[Recording]]  # or a stream of its blocks, from the start at each call
    load: Load | None = None
    measured: Recording | None = None  # before anything was done to it, where anything was

    @property
    def rate_hz(self) -> float:
        first = self.recording if isinstance(self.recording, Recording) else next(iter(self.recording()))
        return first.rate_hz


@dataclass(frozen=True, eq=False)
class Rows:
    """A block of the regression; `W` is made of a wider source only if somebody asks for the whole of it."""

    source: Array  # (T, n, m)
    tau: Array  # (T, n)
    use: NDArray[np.bool_]  # (T, n)
    pick: NDArray[np.int64] | None = None  # which columns of the source are W's

    @cached_property
    def W(self) -> Array:
        """(T, n, r)."""
        return self.source if self.pick is None else np.take(self.source, self.pick, axis=2, mode="clip")

    def of_joint(self, j: int, columns: NDArray[np.int64], rows: NDArray[np.bool_] | slice = slice(None)) -> Array:
        """Some columns of the rows of one joint."""
        return self.source[rows, j][:, columns if self.pick is None else self.pick[columns]]


_own = threading.local()


def _scratch(use: str, shape: tuple[int, ...]) -> Array:
    """Memory of this thread's for what nobody keeps: fresh pages cost more than the kernel that fills them."""
    memory = getattr(_own, use, None)
    if memory is None or memory.shape != shape:
        memory = np.empty(shape)
        setattr(_own, use, memory)
    return memory


def _carried(load: Load | None) -> set[str]:
    """Names of the unknown loads that act."""
    return {load.name} if load is not None and load.parameters is None else set()


@dataclass(frozen=True, eq=False)
class LinearModel:
    """Which parameters are sought, which are known, and the columns they multiply."""

    robot: Robot
    terms: tuple[Term, ...] = ()
    fixed: Mapping[str, float] = field(default_factory=dict)  # parameters with known values
    loads: tuple[tuple[str, str], ...] = ()  # (name, body) of unknown loads
    dead_zone: Array | None = None  # speeds below which a joint counts as standing, (n,)

    def __post_init__(self) -> None:
        self.robot.layout.indices(self.fixed)  # a wrong name is said here
        bad = [name for name, value in self.fixed.items() if not np.isfinite(value)]
        if bad:
            raise OptionError(f"the known value of {bad[0]} is {self.fixed[bad[0]]}; give a finite number")
        for name, body in self.loads:
            if body not in self.robot.layout.bodies:
                raise OptionError(
                    f"the load '{name}' sits on '{body}', which is not identified; "
                    f"valid bodies: {', '.join(self.robot.layout.bodies)}"
                )

    @cached_property
    def names(self) -> tuple[str, ...]:
        """All parameters: the robot's, then those of the terms and of unknown loads."""
        extra = [name for term in self.terms for name in term.names(self.robot)]
        loads = [f"{name}.{part}" for name, _ in self.loads for part in INERTIAL]
        return (*self.robot.parameter_names, *extra, *loads)

    @cached_property
    def units(self) -> tuple[str, ...]:
        extra = [unit for term in self.terms for unit in term.units(self.robot)]
        return (*self.robot.layout.units, *extra, *INERTIAL_UNITS * len(self.loads))

    @cached_property
    def nominal(self) -> Array:
        theta = self.robot.parameters.copy()
        for name, value in self.fixed.items():
            theta[self.robot.layout.index(name)] = value
        extra = [np.zeros(0), *(np.asarray(term.nominal(self.robot), dtype=float) for term in self.terms)]
        return frozen(np.concatenate([theta, *extra, np.zeros(10 * len(self.loads))]))

    def with_nominal(self, robot: Robot) -> "LinearModel":
        """The same regression for other values of the parameters that are sought; its structure is not found again."""
        made = replace(self, robot=robot)
        made.__dict__.update({name: getattr(self, name) for name in ("names", "units", "base", "active")})
        return made

    def with_terms(self, terms: tuple[Term, ...]) -> "LinearModel":
        """The same regression with other settings of its terms, as long as they have the same parameters."""
        made = replace(self, terms=terms)
        if made.names == self.names:
            made.__dict__.update({name: getattr(self, name) for name in ("base", "active")})
        return made

    def prepared(self, recording: Recording) -> Recording:
        """The recording as the terms read it."""
        for term in self.terms:
            read = getattr(term, "prepared", None)
            recording = recording if read is None else read(self.robot, recording)
        return recording

    @cached_property
    def reads_whole(self) -> bool:
        """Whether a term needs a recording in one piece."""
        return any(getattr(term, "whole", False) for term in self.terms)

    @cached_property
    def gains(self) -> Array:
        """By what recorded torque is multiplied, a joint."""
        gains = np.ones(self.robot.n)
        for term in self.terms:
            read = getattr(term, "gains", None)
            gains = gains if read is None else gains * read(self.robot)
        return gains

    @cached_property
    def base(self) -> BaseParameters:
        """Independent columns of all that is sought, terms and loads included."""
        free = [name for name in self.robot.parameter_names if name not in self.fixed]
        own = base_parameters(self.robot, only=free)
        p, extra = self.robot.layout.size, len(self.names) - self.robot.layout.size
        if not extra:
            return own
        kept = [*own.kept, *range(p, p + extra - 10 * len(self.loads))]
        regrouped, blocks, without = list(own.regrouped), [own.K], list(own.without_effect)
        first = p + extra - 10 * len(self.loads)
        for k, (_, body) in enumerate(self.loads):
            columns = range(self.robot.layout.body(body).start, self.robot.layout.body(body).stop)
            shift = first + 10 * k - columns.start
            alone = base_parameters(self.robot, only=[self.robot.parameter_names[c] for c in columns])
            kept += [c + shift for c in alone.kept]
            regrouped += [c + shift for c in alone.regrouped]
            without += [c + shift for c in alone.without_effect]
            blocks.append(alone.K)
        K = np.zeros((len(kept), len(regrouped)))
        K[: own.rank, : own.K.shape[1]] = own.K
        row, column = own.rank + (extra - 10 * len(self.loads)), own.K.shape[1]
        for block in blocks[1:]:
            K[row : row + block.shape[0], column : column + block.shape[1]] = block
            row, column = row + block.shape[0], column + block.shape[1]
        return BaseParameters(
            parameter_names=self.names,
            kept=frozen(kept, np.int64),
            regrouped=frozen(regrouped, np.int64),
            without_effect=frozen(without, np.int64),
            K=frozen(K),
            smallest_kept=own.smallest_kept,
            largest_dropped=own.largest_dropped,
        )

    @property
    def rank(self) -> int:
        return self.base.rank

    @cached_property
    def active(self) -> tuple[NDArray[np.int64], ...]:
        """The base columns that a joint's torque can depend on, from the structure of the robot."""
        if self.robot.nq != self.robot.n:
            raise DataError(f"{self.robot.name} has ball or free joints; recordings are of hinges and slides")
        q, qd, qdd = random_states(self.robot, np.random.default_rng(1), 50, within_limits=False)
        probe = Recording(np.arange(len(q), dtype=float), q, np.zeros_like(qd), qd, qdd)
        source, pick, _ = self._columns(self._standing(probe), {name for name, _ in self.loads})
        seen = np.abs(source).max(axis=0) > 0
        return tuple(np.flatnonzero(row) for row in (seen if pick is None else seen[:, pick]))

    def _standing(self, block: Recording) -> Recording:
        """The block with speeds inside the dead zone set to zero, so that noise does not flip dry friction."""
        if block.qd is None or block.qdd is None:
            raise DataError("the recording has no velocities or accelerations; preprocess it first")
        if block.n != self.robot.n:
            raise DataError(
                f"the recording has {block.n} joints, {self.robot.name} has {self.robot.n}; "
                "lock joints of the model (--lock), or choose columns by a mapping file"
            )
        if self.dead_zone is None:
            return block
        qd = np.where(np.abs(block.qd) < self.dead_zone, 0.0, block.qd)
        return Recording(block.t, block.q, block.tau, qd, block.qdd, block.joints, block.more, block.about)

    def _columns(
        self, block: Recording, carried: set[str], load: Load | None = None
    ) -> tuple[Array, NDArray[np.int64] | None, Array]:
        """Columns, which of them are W's, and the torque of all that is not sought.

        That is the rest of the robot, fixed parameters and known loads. The columns are good until the next call.
        """
        q, qd, qdd = block.q, block.qd, block.qdd
        assert qd is not None
        assert qdd is not None
        Y = regressor(self.robot, q, qd, qdd, out=_scratch("regressor", (len(q), self.robot.n, self.robot.layout.size)))
        self._turn_rotors(Y, block)
        warmth = block.more.get(FRICTION_SCALE)
        if warmth is not None:
            self._scale_friction(Y, warmth)
        known = known_torque(self.robot, q, qd, qdd) if self._has_known else np.zeros_like(qd)
        theta = self._fixed_values.copy()
        if load is not None and load.parameters is not None:
            theta[self.robot.layout.body(load.body)] += load.parameters
        if theta.any():
            acting = np.flatnonzero(theta)
            known += Y[:, :, acting] @ theta[acting]
        own = self.base.kept[self.base.kept < self.robot.layout.size]
        if not self.terms and not self.loads:
            return Y, own, known
        parts = [np.take(Y, own, axis=2, mode="clip")]
        for term in self.terms:
            columns = term.columns(self.robot, block)
            warm = None if not getattr(term, "friction", False) else warmth
            parts.append(columns if warm is None else columns * warm[:, :, None])
        first = len(self.names) - 10 * len(self.loads)
        for k, (name, body) in enumerate(self.loads):
            start = first + 10 * k
            mine = self.base.kept[(self.base.kept >= start) & (self.base.kept < start + 10)] - start
            columns = Y[:, :, self.robot.layout.body(body)][:, :, mine]
            parts.append(columns if name in carried else np.zeros_like(columns))
        return np.concatenate(parts, axis=2), None, known

    def _turn_rotors(self, Y: Array, block: Recording) -> None:
        """The joints' own columns by the motion of the rotors, where that is not the links'."""
        k, layout = np.arange(self.robot.n), self.robot.layout
        rate, acceleration = block.more.get(ROTOR_RATE), block.more.get(ROTOR_ACCELERATION)
        if acceleration is not None and "armature" in layout.properties:
            Y[:, k, layout.block("armature").start + k] = acceleration
        if rate is None:
            return
        still = 0.0 if self.dead_zone is None else self.dead_zone
        for prop, column in (("damping", rate), ("coulomb", np.where(np.abs(rate) < still, 0.0, np.sign(rate)))):
            if prop in layout.properties:
                Y[:, k, layout.block(prop).start + k] = column

    def _scale_friction(self, Y: Array, scale: Array) -> None:
        """Multiply the robot's own friction columns, a row and joint."""
        k = np.arange(self.robot.n)
        for prop in (prop for prop in self.robot.layout.properties if prop != "armature"):
            Y[:, k, self.robot.layout.block(prop).start + k] *= scale

    @cached_property
    def _has_known(self) -> bool:
        return any(bool(np.any(part)) for part in self.robot.known)

    @cached_property
    def _fixed_values(self) -> Array:
        theta = np.zeros(self.robot.layout.size)
        for name, value in self.fixed.items():
            theta[self.robot.layout.index(name)] = value
        return theta

    def rows(self, block: Recording, load: Load | None = None, passing: bool = False) -> Rows:
        """W, the torque that is left for it to explain, and which rows count.

        A `passing` answer is good until this thread asks for the next.
        """
        source, pick, known = self._columns(self._standing(block), _carried(load), load)
        mask = np.ones(block.tau.shape, dtype=bool)
        if "use" in block.more:
            use = np.asarray(block.more["use"]) > 0.5
            mask &= use[:, None] if use.ndim == 1 else use
        rows = Rows(source, block.tau * self.gains - known, mask, pick)
        return rows if passing else Rows(rows.W, rows.tau, mask)

    def torque(self, theta: Array, block: Recording, load: Load | None = None) -> Array:
        """What is recorded, by parameters in the order of `names`, for the states of a prepared block."""
        source, pick, known = self._columns(self._standing(block), _carried(load), load)
        beta = self.base.reduce(theta)
        if pick is not None:
            beta, few = np.zeros(source.shape[2]), beta
            beta[pick] = few
        return np.asarray((source @ beta + known) / self.gains)


def sliced_torque(model: LinearModel, theta: Array, recording: Recording, load: Load | None = None) -> Array:
    """`model.torque` of a recording of any length, in slices, so that no large regressor is made."""
    recording = model.prepared(recording)
    size = max(128, (16 << 20) // (8 * model.robot.n * max(1, len(model.names))))
    parts = [model.torque(theta, recording.between(k, k + size), load) for k in range(0, len(recording), size)]
    return np.concatenate(parts) if parts else np.zeros((0, model.robot.n))
