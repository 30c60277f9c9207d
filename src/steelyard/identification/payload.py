"""`identify_payload`: mass, centre of mass and inertia of what a robot carries.

Torque is linear in the ten parameters φ of a load, as in those of a body: tau_loaded = W_arm β + W_load φ. Either the
arm is known (from a result, or as its model has it) and φ explains the difference, or recordings with and without the
load are solved for both at once. What the data say of φ is then one small problem, min ‖A φ − b‖² with unit noise,
on which assumptions (a point mass; a body that can exist) cost nothing. Gaz and De Luca, IROS 2017.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..data.decimation import Decimation
from ..data.recording import Recording
from ..errors import OptionError, unknown_name
from ..robot.feasibility import Invalidity, invalidities
from ..robot.inertia import from_mass_com_inertia, mass_com_inertia
from ..robot.parameters import INERTIAL
from ..robot.robot import Robot, frozen
from .estimate import Estimate
from .estimators.held import Held
from .estimators.least_squares import WLS
from .fit import Estimator, Progress, silent
from .identify import identify_problem, prepare
from .model import Experiment, Load
from .physical import PhysicalSettings, solve_physical
from .problem import Problem, build_problem
from .terms import Term

Array = NDArray[np.float64]
Assumption = Literal["body", "point", "mass"]
ASSUMPTIONS: Mapping[str, str] = {
    "body": "all ten parameters",
    "point": "mass and centre of mass, of a load without extent",
    "mass": "the mass alone, at a known place",
}
NAME = "payload"
# A quantity that leans on directions which the data do not show by more than this part has no deviation.
_LEANS = 1e-6
_TURNS = 50
_SETTLED = 1e-12


@dataclass(frozen=True, eq=False)
class Evidence:
    """What the data say of a load: ‖A φ − b‖² with noise of unit variance, φ its ten parameters."""

    A: Array  # (k, 10), k ≤ 10 combinations that the data show
    b: Array


@dataclass(frozen=True, eq=False)
class PayloadFit:
    """A load on a body, in the body's frame, and how sure that is; deviations are infinite where data say nothing."""

    body: str
    assume: Assumption
    jointly: bool  # with recordings of the empty arm, or by difference from an arm that is known
    parameters: Array  # (10,)
    covariance: Array = field(repr=False)  # (10, 10)
    mass: float
    mass_deviation: float
    centre: Array  # m, in the frame of the body
    centre_deviation: Array
    inertia: Array  # (3, 3) about the centre of mass, in the axes of the body
    inertia_deviation: Array
    surplus: float  # squared deviation from the assumption, in noise variances, beside its degrees of freedom
    surplus_freedom: int
    impossible_by: float  # squared distance to a body that can exist, in noise variances; 0 where it is one
    message: str
    estimate: Estimate = field(repr=False)  # arm and load

    @property
    def invalid(self) -> tuple[Invalidity, ...]:
        """Why no real body could have these parameters; a point mass can exist."""
        return invalidities([NAME], self.parameters[None, :])

    @property
    def load(self) -> Load:
        """The load as one that is known."""
        return Load(self.body, self.parameters)


def _shifted(h: Array, mass: float) -> Array:
    """Inertia of a point mass with first moment h, its six entries."""
    return from_mass_com_inertia(mass, h / mass, np.zeros((3, 3)))[4:]


def _shifted_slopes(h: Array, mass: float) -> Array:
    """∂/∂(m, h) of (|h|²1 − h hᵀ)/m, (6, 4)."""
    slopes = np.empty((6, 4))
    slopes[:, 0] = -_shifted(h, mass) / mass
    upper = np.triu_indices(3)
    for k in range(3):
        e = np.eye(3)[k]
        matrix = (2 * h[k] * np.eye(3) - np.outer(e, h) - np.outer(h, e)) / mass
        slopes[:, 1 + k] = matrix[upper]
    return slopes


def evidence(estimate: Estimate) -> Evidence:
    """What an estimate of arm and load says of the load alone, whatever the arm is."""
    base = estimate.model.base
    first = len(estimate.names) - 10
    rows = np.flatnonzero(base.kept >= first)
    blind = estimate.blind[rows]
    U, s, _ = np.linalg.svd(blind, full_matrices=True)
    seen = U[:, int((s > 1e-9 * s.max(initial=0.0)).sum()) :].T  # combinations that no blind direction moves
    C = seen @ estimate.base_covariance[np.ix_(rows, rows)] @ seen.T
    scale = np.sqrt(np.diag(C))
    half = np.linalg.cholesky(C / np.outer(scale, scale)) * scale[:, None]
    whiten = np.linalg.solve(half, seen)
    return Evidence(whiten @ base.projection[rows][:, first:], whiten @ estimate.base_parameters[rows])


def _as_body(data: Evidence) -> tuple[Array, Array, Array]:
    """φ, the directions that may vary, and their covariance."""
    scale = np.linalg.norm(data.A, axis=0)
    scale[scale == 0] = 1.0
    U, s, Vt = np.linalg.svd(data.A / scale, full_matrices=False)
    keep = s > 1e-10 * s.max(initial=0.0)
    root = (Vt[keep].T / s[keep]) / scale[:, None]
    return root @ (U[:, keep].T @ data.b), np.eye(10), root @ root.T


def _inverse(A: Array) -> Array:
    """(AᵀA)⁺."""
    return np.asarray(np.linalg.pinv(A.T @ A), dtype=np.float64)


def _as_point(data: Evidence) -> tuple[Array, Array, Array]:
    """Gauss–Newton over mass and first moments, the inertia that of a point."""
    x: Array = np.asarray(np.linalg.lstsq(data.A[:, :4], data.b, rcond=None)[0], dtype=np.float64)
    if not x[0] > 0:
        return np.concatenate([x, np.zeros(6)]), np.eye(10)[:, :4], _inverse(data.A[:, :4])
    J = np.zeros((10, 4))
    for _ in range(_TURNS):
        J[:4], J[4:] = np.eye(4), _shifted_slopes(x[1:], x[0])
        left = data.b - data.A @ np.concatenate([x, _shifted(x[1:], x[0])])
        step = np.linalg.lstsq(data.A @ J, left, rcond=None)[0]
        while x[0] + step[0] <= 0.1 * x[0]:
            step *= 0.5
        x += step
        if np.linalg.norm(data.A @ J @ step) < _SETTLED * max(1.0, float(np.linalg.norm(data.b))):
            break
    return np.concatenate([x, _shifted(x[1:], x[0])]), J, _inverse(data.A @ J)


def _as_mass(data: Evidence, centre: Array) -> tuple[Array, Array, Array]:
    unit = from_mass_com_inertia(1.0, centre, np.zeros((3, 3)))
    column = data.A @ unit
    square = float(column @ column)
    if not square > 0:
        return np.zeros(10), unit[:, None], np.zeros((1, 1))
    return unit * float(column @ data.b) / square, unit[:, None], np.array([[1.0 / square]])


def _possible(data: Evidence, robot: Robot, free: Array) -> tuple[Array, float, str]:
    """The body that can exist and is nearest to the evidence, and how much farther it is."""
    arm = robot.with_layout(bodies=(), properties=())
    around = max(float(free[0]), 1e-3)
    centre = free[1:4] / around if np.linalg.norm(free[1:4] / around) < 1.0 else np.zeros(3)
    likely = from_mass_com_inertia(around, centre, 4e-3 * around * np.eye(3))  # a ball of 0.1 m settles what is unseen
    found = solve_physical(data.A, data.b, arm, PhysicalSettings(), None, likely, 1.0, (NAME,))
    cost = max(0.0, found.objective - _cost(data, free))
    told = f"made possible ({found.message}) at a cost of {cost:.3g} noise variances"
    return found.parameters, cost, told if not found.active else f"{told}; held by {', '.join(found.active)}"


def _cost(data: Evidence, phi: Array) -> float:
    e = data.A @ phi - data.b
    return float(e @ e)


def _deviations(data: Evidence, phi: Array, J: Array, covariance: Array) -> tuple[float, Array, Array]:
    """Of mass, centre and inertia about it, by their slopes; infinite where the data do not show them."""
    inner = data.A @ J
    sizes = np.linalg.norm(inner, axis=0)
    sizes[sizes == 0] = 1.0
    _, s, Vt = np.linalg.svd(inner / sizes, full_matrices=True)
    unseen = Vt[int((s > 1e-9 * s.max(initial=0.0)).sum()) :].T / sizes[:, None]
    mass, h = phi[0], phi[1:4]
    slopes = np.zeros((10, 10))
    slopes[0, 0] = 1.0
    if mass != 0:
        slopes[1:4, 0], slopes[1:4, 1:4] = -h / mass**2, np.eye(3) / mass
        slopes[4:, :4] = -_shifted_slopes(h, mass)
    slopes[4:, 4:] = np.eye(6)
    G = slopes @ J
    sizes = np.sqrt(np.maximum(np.einsum("ki,ij,kj->k", G, covariance, G), 0.0))
    if unseen.shape[1]:
        lean = np.linalg.norm(G @ unseen, axis=1)
        sizes[lean > _LEANS * np.linalg.norm(G, axis=1) * np.linalg.norm(unseen, axis=0).max()] = np.inf
    if mass == 0:
        sizes[1:4] = np.inf
    spread = np.empty((3, 3))
    spread[np.triu_indices(3)] = sizes[4:]
    spread.T[np.triu_indices(3)] = sizes[4:]
    return float(sizes[0]), sizes[1:4], spread


def settle(
    estimate: Estimate,
    body: str,
    jointly: bool,
    assume: Assumption = "body",
    centre: ArrayLike = (0.0, 0.0, 0.0),
    physical: bool = False,
) -> PayloadFit:
    """The load that an estimate of arm and load speaks of, under an assumption."""
    data = evidence(estimate)
    if assume == "body":
        phi, J, covariance = _as_body(data)
    elif assume == "point":
        phi, J, covariance = _as_point(data)
    else:
        phi, J, covariance = _as_mass(data, np.asarray(centre, dtype=float))
    surplus, freedom = _cost(data, phi), len(data.b) - (len(data.b) if assume == "body" else J.shape[1])
    message, impossible_by = estimate.message, 0.0
    if assume == "body" and (physical or invalidities([NAME], phi[None, :])):
        nearest, impossible_by, told = _possible(data, estimate.model.robot, phi)
        if physical:
            phi, message = nearest, told if message == "solved" else f"{message}; {told}"
    m, c, spread = _deviations(data, phi, J, covariance)
    mass = float(phi[0])
    if assume != "body":
        spread[:] = 0.0  # assumed
    _, where, inertia = mass_com_inertia(phi) if mass else (0.0, np.full(3, np.nan), np.full((3, 3), np.nan))
    if assume != "body" and mass:
        inertia = np.zeros((3, 3))
    theta = np.concatenate([estimate.parameters[:-10], phi])
    beta = estimate.model.base.reduce(theta)
    estimate = replace(estimate, parameters=frozen(theta), base_parameters=frozen(beta))
    return PayloadFit(
        body, assume, jointly, frozen(phi), frozen(J @ covariance @ J.T), mass, m, frozen(where), frozen(c),
        frozen(inertia), frozen(spread), surplus, max(0, freedom), impossible_by, message, estimate,
    )  # fmt: skip


def arm_held(problem: Problem, arm: Estimate | None) -> Held:
    """What is known of the arm in a problem with a load: an estimate, or bodies and rotors as the model has them."""
    base, r = problem.model.base, problem.rank
    values, covariance, held = problem.nominal.copy(), np.zeros((r, r)), np.zeros(r, dtype=bool)
    first = len(problem.model.names) - 10
    if arm is not None:
        k = arm.model.rank
        held[:k], values[:k], covariance[:k, :k] = True, arm.base_parameters, arm.base_covariance
    else:
        known = ("armature", *INERTIAL)
        held[:] = [c < first and problem.model.names[c].rpartition(".")[2] in known for c in base.kept]
    return Held(tuple(held.tolist()), values, covariance)


def _with_load(given: Recording | Experiment, body: str) -> Experiment:
    recording = given.recording if isinstance(given, Experiment) else given
    return Experiment(recording, Load(body, None, NAME))


def payload_problem(
    robot: Robot,
    loaded: Sequence[Recording],
    body: str,
    unloaded: Sequence[Recording] = (),
    arm: Estimate | None = None,
    *,
    terms: Sequence[Term] = (),
    decimation: Decimation | None = None,
    dead_zone: Array | None = None,
) -> Problem:
    """The regression of recordings that are ready on arm and load."""
    robot = robot if arm is None else arm.model.robot
    if body not in robot.layout.bodies:
        raise OptionError(unknown_name("identified body to carry the load", body, robot.layout.bodies))
    experiments = [*(Experiment(x) for x in unloaded), *(_with_load(x, body) for x in loaded)]
    if arm is not None:
        terms, dead_zone = arm.model.terms, arm.model.dead_zone
    fixed = {} if arm is None else arm.model.fixed
    return build_problem(
        robot, experiments, terms=terms, fixed=fixed, decimation=decimation, dead_zone=dead_zone
    )  # fmt: skip


def identify_payload(
    robot: Robot,
    loaded: Recording | Sequence[Recording],
    body: str,
    *,
    unloaded: Recording | Sequence[Recording] = (),
    arm: Estimate | None = None,
    assume: Assumption = "body",
    centre: ArrayLike = (0.0, 0.0, 0.0),
    physical: bool = False,
    method: Estimator | None = None,
    preprocessing: Any = "auto",
    align: Callable[[Problem], Problem] | None = None,
    progress: Progress = silent,
    **settings: Any,
) -> PayloadFit:
    """What a robot carries on one of its bodies.

    With recordings of the empty arm (`unloaded`), arm and load are identified together by `method` (default WLS).
    Otherwise the load explains the difference to an arm that is known: from an estimate (`arm`), whose uncertainty goes
    on to the load, or with bodies and rotors as the model has them, friction estimated beside the load. `assume` is
    "body" (ten parameters), "point" (mass and centre of mass) or "mass" (at `centre`, in the frame of the body).
    """
    if assume not in ASSUMPTIONS:
        raise OptionError(unknown_name("assumption on the load", assume, ASSUMPTIONS))
    if physical and assume != "body":
        raise OptionError("a point mass can always exist; physical is for a load of ten parameters")
    if np.shape(centre) != (3,) or not np.isfinite(centre).all():
        raise OptionError(f"the centre of the load is {np.asarray(centre).tolist()}; give three finite numbers, m")
    with_load = [loaded] if isinstance(loaded, Recording) else list(loaded)
    without = [unloaded] if isinstance(unloaded, Recording) else list(unloaded)
    ready = [[prepare(x, robot, preprocessing) for x in part] for part in (with_load, without)]
    problem = payload_problem(robot, ready[0], body, ready[1], arm, **settings)
    problem = problem if align is None else align(problem)
    jointly = bool(without)
    estimator: Estimator = (WLS() if method is None else method) if jointly else arm_held(problem, arm)
    found = identify_problem(problem, estimator, progress=progress)
    return settle(found, body, jointly, assume, centre, physical)
