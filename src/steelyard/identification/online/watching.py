"""A robot watched while it works: what it carries, how its friction drifts, and when its load changes.

The watch begins with the robot as its model says, learns what differs for a few seconds (as a balance is tared), and
from then on tells a load that is picked up or put down from friction that creeps: a load jumps, and along the ten
parameters of a body; friction drifts.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2, norm

from ...compiled import one_blas_thread
from ...dynamics import BaseParameters, base_parameters, known_torque, regressor
from ...errors import DataError, OptionError, unknown_name
from ...robot.parameters import JOINT_PROPERTIES
from ...robot.robot import Robot
from .changes import Block, Information, Jump, Jumps, forgotten, nothing, of_rows, solved
from .coordinates import Base
from .kalman import Array
from .rates import CausalRates, ChainState, Smoothed
from .tracking import STANDING, usual_torque


@dataclass(frozen=True)
class Watch:
    """Settings of the watch; times in s.

    `heaviest` is the largest load that is thought of, `lever` how far from the body's origin its mass may lie.
    `lightest` is the smallest change that is worth an event. `alarm` is the chance of a false alarm at each look, were
    the noise what it is taken for. `forget` is the memory for slow drift.
    """

    body: str | None = None  # that carries the load; None: the last one
    heaviest: float = 10.0
    lightest: float = 0.1
    lever: float = 0.2
    learn: float = 3.0
    settle: float = 10.0  # until friction is known well enough to be compared with later
    window: float = 1.0
    block: float = 0.04
    row: float = 0.01
    alarm: float = 1e-9
    sure: float = 0.02  # a jump is told when its mass is known to this share, or after `patience`
    patience: float = 0.8
    forget: float = 60.0
    confidence: float = 0.95
    rates: CausalRates = field(default_factory=CausalRates)

    def __post_init__(self) -> None:
        for name in (
            "heaviest",
            "lightest",
            "lever",
            "learn",
            "settle",
            "window",
            "block",
            "row",
            "sure",
            "patience",
            "forget",
        ):
            value = getattr(self, name)
            if not (np.isfinite(value) and value > 0):
                raise OptionError(f"{name} of the watch is {value}; give a number above 0")
        for name in ("alarm", "confidence"):
            if not 0 < getattr(self, name) < 1:
                raise OptionError(f"{name} of the watch is {getattr(self, name)}; it is a share, between 0 and 1")
        if not self.row <= self.block <= 0.2 * self.window:
            raise OptionError(
                f"row {self.row}, block {self.block} and window {self.window} s of the watch must grow; "
                "a window has at least five blocks"
            )


class Load(NamedTuple):
    """What is carried beyond the start: mass with its interval, and where its centre is in the body's frame."""

    mass: float  # kg
    low: float
    high: float
    com: Array  # (3,) m, NaN where there is no mass to have a centre


class Event(NamedTuple):
    """Something that changed."""

    kind: Literal["picked up", "put down", "friction"]
    t: float  # s, when it happened
    told: float  # s, when it was found
    what: str
    mass: float  # kg of the change; N·m for friction
    low: float
    high: float
    load: Load


@dataclass(frozen=True, eq=False)
class Plan:
    """What does not change while a robot is watched."""

    robot: Robot
    settings: Watch

    def __post_init__(self) -> None:
        body = self.settings.body
        if body is not None and body not in self.robot.layout.bodies:
            raise OptionError(unknown_name("identified body", body, self.robot.layout.bodies))

    @cached_property
    def base(self) -> BaseParameters:
        return base_parameters(self.robot)

    @cached_property
    def body(self) -> str:
        return self.robot.layout.bodies[-1] if self.settings.body is None else self.settings.body

    @cached_property
    def reference(self) -> Array:
        """The nominal base parameters; all else is counted from here."""
        return self.base.reduce(self.robot.parameters)

    @cached_property
    def prior(self) -> Information:
        deviation = Base(self.robot, self.base).deviation(0.15)
        return Information(np.diag(deviation**-2.0), np.zeros(self.base.rank))

    @cached_property
    def jumps(self) -> Jumps:
        """A load is up to `heaviest`, with its mass within `lever` of the body's origin."""
        mass, lever = 0.5 * self.settings.heaviest, self.settings.lever
        deviation = np.array([mass, *(mass * lever,) * 3, *(0.5 * mass * lever**2,) * 6])
        return Jumps(self.base.projection[:, self.robot.layout.body(self.body)], np.diag(deviation**2))

    @cached_property
    def threshold(self) -> float:
        """Half the χ² of the directions in which a load shows."""
        seen = np.linalg.matrix_rank(self.jumps.E * np.sqrt(np.diag(self.jumps.D)))
        return 0.5 * float(chi2.isf(self.settings.alarm, max(1, int(seen))))

    @cached_property
    def usual(self) -> Array:
        return usual_torque(self.robot)

    @cached_property
    def dry(self) -> slice:
        return self.robot.layout.block("coulomb")

    @cached_property
    def friction(self) -> tuple[Array, Array]:
        """Where the damping and the Coulomb level of each joint stand among the base parameters."""
        place = {int(column): k for k, column in enumerate(self.base.kept)}
        layout = self.robot.layout
        damping, dry = (range(*layout.block(prop).indices(layout.size)) for prop in ("damping", "coulomb"))
        return np.array([place[c] for c in damping]), np.array([place[c] for c in dry])


@dataclass(frozen=True, eq=False)
class WatchState:
    """Everything that the next sample meets."""

    plan: Plan
    known: Information  # of β, from before the window
    mean: Array  # of β, now
    covariance: Array
    variance: Array  # of the residuals, (n,)
    along: Array  # from one residual to the next, (n,)
    last: Array  # residual
    speed: Array  # mean square, (n,)
    loaded: Array  # Δ of all jumps that are settled, (10,)
    loaded_covariance: Array
    told_friction: NDArray[np.bool_]
    chain: ChainState | None = None
    samples: int = 0
    rows: int = 0
    begun: float = float("nan")
    next_row: float = -np.inf
    blocks: tuple[Block, ...] = ()
    open: Block | None = None
    before: Information | None = None  # of β, up to the last jump
    after: Information | None = None
    jumped: float = float("nan")  # s, when the last jump was
    pending: bool = False  # a jump is suspected
    settled_speed: Array | None = None  # (n,), the usual one when friction was settled
    settled_friction: tuple[Array, Array] | None = None


def watch(robot: Robot, settings: Watch | None = None) -> WatchState:
    """Begin to watch a robot; dry friction and offsets are learned whether or not the model has them."""
    if robot.nq != robot.n:
        raise DataError(f"{robot.name} has ball or free joints; the watch is for hinges and slides")
    full = robot.with_layout(properties=JOINT_PROPERTIES)
    plan = Plan(full, Watch() if settings is None else settings)
    n, p = full.n, plan.base.rank
    P = np.diag(1.0 / np.diag(plan.prior.matrix))
    return WatchState(
        plan,
        known=plan.prior,
        mean=np.zeros(p),
        covariance=P,
        variance=(0.02 * plan.usual) ** 2,
        along=0.8 * (0.02 * plan.usual) ** 2,
        last=np.zeros(n),
        speed=np.zeros(n),
        loaded=np.zeros(10),
        loaded_covariance=np.zeros((10, 10)),
        told_friction=np.zeros(n, dtype=bool),
    )


def _rows(plan: Plan, now: Smoothed) -> tuple[Array, Array, Array]:
    """W, the torque beyond the reference, and how surely each joint moves (0 … 1)."""
    Y = regressor(plan.robot, now.q, now.qd, now.qdd)
    moving = np.tanh(now.qd / STANDING)
    joints = np.arange(plan.robot.n)
    Y[joints, plan.dry.start + joints] = moving
    W = plan.base.columns(Y)
    return W, now.tau - known_torque(plan.robot, now.q, now.qd, now.qdd) - W @ plan.reference, moving**2


def _noise(state: WatchState, moving: Array) -> Array:
    """Deviation that a row counts with: residuals that remember count as fewer, and dry friction at rest is unknown."""
    rho = np.clip(state.along / state.variance, 0.0, 0.95)
    dry = state.plan.reference[state.plan.friction[1]] + state.mean[state.plan.friction[1]]
    return np.sqrt(state.variance * (1 + rho) / (1 - rho) + (1.0 - moving) * np.maximum(dry, 0.0) ** 2)


def _with_row(state: WatchState, now: Smoothed) -> WatchState:
    """The state with one more row in its open block, and what residuals are usual."""
    plan, settings = state.plan, state.plan.settings
    W, y, moving = _rows(plan, now)
    rows = of_rows(W, y, _noise(state, moving))
    residual = y - W @ state.mean
    open_ = Block(now.t, now.t, rows) if state.open is None else Block(state.open.start, now.t, state.open.rows + rows)
    share = max(settings.row / settings.learn, 1.0 / (state.rows + 10.0))  # the first guess counts as ten rows
    # A jump must not pass for noise: a residual counts as three deviations at most, and not at all under suspicion.
    kept = np.clip(residual, -3 * np.sqrt(state.variance), 3 * np.sqrt(state.variance))
    variance, along = state.variance, state.along
    if not state.pending:
        variance = np.maximum((1 - share) * state.variance + share * kept**2, (1e-4 * plan.usual) ** 2)
        along = (1 - share) * state.along + share * kept * state.last
    speed = (1 - share) * state.speed + share * now.qd**2
    return replace(state, rows=state.rows + 1, open=open_, variance=variance, along=along, last=kept, speed=speed)


def _mass(state: WatchState, size: Array, covariance: Array) -> tuple[float, float, float]:
    reach = norm.ppf(0.5 + 0.5 * state.plan.settings.confidence) * np.sqrt(max(covariance[0, 0], 0.0))
    return float(size[0]), float(size[0] - reach), float(size[0] + reach)


def load(state: WatchState) -> Load:
    """What is carried now, beyond the start."""
    size, covariance = state.loaded, state.loaded_covariance
    if state.before is not None and state.after is not None:
        more, its = state.plan.jumps.estimate(state.before, state.after)
        size, covariance = size + more, covariance + its
    mass, low, high = _mass(state, size, covariance)
    com = size[1:4] / mass if low > 0 else np.full(3, np.nan)
    return Load(mass, low, high, com)


def _total(blocks: tuple[Block, ...], first: Information) -> Information:
    return sum((block.rows for block in blocks), start=first)


def _sides(state: WatchState, at: float) -> tuple[tuple[Block, ...], tuple[Block, ...]]:
    """Blocks that are wholly before and wholly after a jump; what the chain was mixing is of neither side."""
    omega = state.plan.settings.rates.omega
    earlier = tuple(block for block in state.blocks if block.stop < at - 4 / omega)
    return earlier, tuple(block for block in state.blocks if block.start > at + 8 / omega)


def _taken(state: WatchState, jump: Jump) -> WatchState:
    """The state on the other side of a jump; the load before it is settled."""
    plan = state.plan
    earlier, later = _sides(state, jump.start)
    before = _total(earlier, state.known)
    loaded, covariance = state.loaded, state.loaded_covariance
    if state.before is not None and state.after is not None:
        # What came since the jump, or while it came, had counted as the time before.
        wrong = _total(state.blocks[len(earlier) :], nothing(plan.base.rank))
        settled = Information(state.after.matrix - wrong.matrix, state.after.vector - wrong.vector)
        size, its = plan.jumps.estimate(state.before, settled)
        loaded, covariance = loaded + size, covariance + its
    after = _total(later, nothing(plan.base.rank))
    return replace(
        state,
        known=plan.jumps.widened(before),
        blocks=later,
        loaded=loaded,
        loaded_covariance=covariance,
        before=before,
        after=after,
        jumped=jump.start,
        pending=False,
    )


def _look(state: WatchState, t: float) -> tuple[WatchState, list[Event]]:
    """Whether the load has jumped within the window."""
    plan, settings = state.plan, state.plan.settings
    jump = plan.jumps.likeliest(state.known, state.blocks, shortest=3)
    if jump is None or jump.gain < plan.threshold:
        return replace(state, pending=False), []
    earlier, later = _sides(state, jump.start)
    if len(later) < 2:
        return replace(state, pending=True), []
    known = _total(earlier, state.known)
    mass, low, high = _mass(state, *plan.jumps.estimate(known, _total(later, nothing(plan.base.rank))))
    surely = abs(mass) > settings.lightest and low * high > 0
    known_well, waited = 0.5 * (high - low) < settings.sure * abs(mass), t - jump.start
    if not surely or not (known_well or waited > settings.patience):
        return replace(state, pending=True), []
    state = _taken(state, jump)
    what = f"{abs(mass):.3g} kg {'on' if mass > 0 else 'off'} {plan.body}"
    kind: Literal["picked up", "put down"] = "picked up" if mass > 0 else "put down"
    return state, [Event(kind, jump.start, t + settings.rates.delay, what, mass, low, high, load(state))]


def friction(state: WatchState) -> tuple[Array, Array]:
    """Friction of every joint at one speed of its own, Fc + damping·|q̇|, N·m, and its standard deviation."""
    damping, dry = state.plan.friction
    speed = np.sqrt(state.speed) if state.settled_speed is None else state.settled_speed
    at, P = state.plan.reference + state.mean, state.covariance
    variance = P[dry, dry] + 2 * speed * P[damping, dry] + speed**2 * P[damping, damping]
    return at[dry] + speed * at[damping], np.sqrt(np.maximum(variance, 0.0))


def _drifted(state: WatchState, t: float) -> tuple[WatchState, list[Event]]:
    """Whether friction left what it was when the watch had learned it: six deviations, and a quarter of itself."""
    value, deviation = friction(state)
    if state.settled_friction is None:
        return replace(state, settled_speed=np.sqrt(state.speed), settled_friction=(value, deviation)), []
    first, spread = state.settled_friction
    change = value - first
    reach = np.hypot(deviation, spread)
    far = (np.abs(change) > 6 * reach) & (np.abs(change) > np.maximum(0.25 * np.abs(first), 0.02 * state.plan.usual))
    events = []
    for j in np.flatnonzero(far & ~state.told_friction):
        low, high = change[j] - 2 * reach[j], change[j] + 2 * reach[j]
        what = f"{state.plan.robot.dof_names[j]} from {first[j]:.3g} to {value[j]:.3g} N·m"
        events.append(Event("friction", t, t, what, float(change[j]), float(low), float(high), load(state)))
    return replace(state, told_friction=far), events


def _with_block(state: WatchState) -> tuple[WatchState, list[Event]]:
    """The state with its open block closed: the oldest leaves the window, and the watch looks."""
    plan, settings, block = state.plan, state.plan.settings, state.open
    assert block is not None
    blocks, known = (*state.blocks, block), state.known
    after = None if state.after is None else state.after + block.rows
    share = float(np.exp(-settings.block / settings.forget))
    while blocks[-1].stop - blocks[0].start > settings.window and not (state.pending and len(blocks) < 60):
        known, blocks = forgotten(known + blocks[0].rows, plan.prior, share), blocks[1:]
    whole = known
    for each in blocks:
        whole = whole + each.rows
    mean, covariance = solved(whole)
    state = replace(state, blocks=blocks, known=known, after=after, open=None, mean=mean, covariance=covariance)
    t = block.stop
    if t - state.begun < settings.learn:
        return state, []
    state, events = _look(state, t)
    if state.pending or t - state.begun < settings.settle or t - state.jumped < settings.learn:
        return state, events
    state, more = _drifted(state, t)
    return state, events + more


def observe(state: WatchState, t: float, q: Array, tau: Array) -> tuple[WatchState, list[Event]]:
    """The watch after one more sample, and what it has found; samples that are not finite or not later are left out."""
    late = state.chain is not None and t <= state.chain.t
    if late or not (np.isfinite(q).all() and np.isfinite(tau).all()):
        return state, []
    with one_blas_thread():
        return _observed(state, t, q, tau)


def _observed(state: WatchState, t: float, q: Array, tau: Array) -> tuple[WatchState, list[Event]]:
    settings = state.plan.settings
    chain, now = settings.rates.push(state.chain, t, q, tau)
    state = replace(state, chain=chain, samples=state.samples + 1, begun=t if state.samples == 0 else state.begun)
    if not now.settled or now.t < state.next_row:
        return state, []
    state = replace(_with_row(state, now), next_row=now.t + settings.row * (1 - 1e-6))
    assert state.open is not None
    if state.open.stop - state.open.start < settings.block - 1.5 * settings.row:
        return state, []
    return _with_block(state)


def as_json(event: Event) -> dict[str, Any]:
    """An event for a line of JSON."""
    return {
        "event": event.kind,
        "t": event.t,
        "told": event.told,
        "what": event.what,
        "change": event.mass,
        "interval": [event.low, event.high],
        "load_kg": event.load.mass,
        "load_interval_kg": [event.load.low, event.load.high],
        "load_com_m": event.load.com,
    }
