"""Is our dynamics of this model right? Figures against MuJoCo and against the laws of mechanics, at random states."""

from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

from ..dynamics import (
    coriolis_matrix,
    energy,
    forward_dynamics,
    gravity,
    inverse_dynamics,
    known_torque,
    mass_matrix,
    regressor,
)
from ..errors import OptionError
from ..robot.feasibility import Invalidity, invalidities
from ..robot.inertials import Mended
from ..robot.robot import Robot
from ..robot.states import random_states
from ..robot.twin import Twin, twin

Array = NDArray[np.float64]

# Against MuJoCo and for identities only rounding may remain.
EXACT = 1e-9
# A central difference with step 1e-5 leaves about 1e-10 of truncation and 1e-11/1e-5 of rounding.
DIFFERENCED = 1e-5
_STEP = 1e-5


@dataclass(frozen=True)
class Check:
    """One claim, the largest relative error seen, and how large it may be."""

    claim: str
    error: float
    limit: float

    @property
    def holds(self) -> bool:
        return bool(self.error <= self.limit)


@dataclass(frozen=True)
class ModelCheck:
    """All claims about one model."""

    robot: str
    states: int
    checks: tuple[Check, ...]
    invalid: tuple[Invalidity, ...]
    notes: tuple[str, ...]

    @property
    def holds(self) -> bool:
        return all(check.holds for check in self.checks)

    @property
    def mended(self) -> bool:
        """Whether inertias were changed when the model was loaded."""
        return any(isinstance(note, Mended) for note in self.notes)

    @property
    def verdict(self) -> str:
        """What the dynamics of the model are, in words."""
        if not self.holds:
            return "wrong: this is a fault in Steelyard"
        if self.invalid:
            return "right, of inertias that no rigid body has (see warnings)"
        return "right, of the inertias as mended (see notes)" if self.mended else "right"


def _relative(value: Array, reference: Array, of: Array | None = None) -> float:
    """Largest difference as a share of the largest reference, or of another quantity where that may vanish."""
    scale = float(np.abs(reference if of is None else of).max(initial=0.0))
    return float(np.abs(value - reference).max(initial=0.0)) / (scale if scale > 0 else 1.0)


def _moved(judge: Twin, q: Array, qd: Array, step: float) -> Array:
    """The position after moving with a velocity for a time, along the sphere where there are quaternions."""
    position = np.array(judge.robot.model_position)
    velocity = np.zeros(judge.model.nv)
    position[judge.robot.model_coordinates] = q
    velocity[judge.robot.model_dofs] = qd
    mujoco.mj_integratePos(judge.model, position, velocity, step)
    return position[judge.robot.model_coordinates]


def _differenced(robot: Robot, judge: Twin, q: Array, qd: Array, qdd: Array) -> tuple[float, float]:
    """Errors of Ṁ = C + Cᵀ and of d(energy)/dt = q̇ᵀ (tau − friction)."""
    h = _STEP
    ahead = np.array([_moved(judge, *s, h) for s in zip(q, qd + 0.5 * h * qdd, strict=True)])
    behind = np.array([_moved(judge, *s, -h) for s in zip(q, qd - 0.5 * h * qdd, strict=True)])
    rate = (mass_matrix(robot, ahead) - mass_matrix(robot, behind)) / (2 * h)
    C = coriolis_matrix(robot, q, qd)
    after, before = np.sum(energy(robot, ahead, qd + h * qdd), 0), np.sum(energy(robot, behind, qd - h * qdd), 0)
    frictionless = inverse_dynamics(robot, q, qd, qdd) - inverse_dynamics(robot, q, qd, 0 * qdd)
    frictionless += np.einsum("tij,tj->ti", C, qd) + gravity(robot, q)
    power = np.einsum("ti,ti->t", qd, frictionless)
    swing = np.abs(mass_matrix(robot, q)).max() * np.abs(qd).max()
    energetic = np.abs(qd).max() * np.abs(frictionless).max()
    return (
        _relative(C + C.transpose(0, 2, 1), rate, of=swing),
        _relative((after - before) / (2 * h), power, of=energetic),
    )


def _there_and_back(robot: Robot, q: Array, qd: Array, tau: Array) -> Array:
    """Torque to acceleration to torque: the torque is what rounding keeps where the mass matrix is nearly singular."""
    return inverse_dynamics(robot, q, qd, forward_dynamics(robot, q, qd, tau))


def check_model(robot: Robot, rng: np.random.Generator, states: int = 200) -> ModelCheck:
    """Compare regressor, torque, mass matrix and energy with MuJoCo's, and hold them to the identities they obey."""
    if isinstance(states, bool) or not isinstance(states, int | np.integer) or states < 1:
        raise OptionError(f"states is {states!r}; give a whole number of at least 1")
    judge = twin(robot)
    q, qd, qdd = random_states(robot, rng, int(states))
    tau = inverse_dynamics(robot, q, qd, qdd)
    linear = regressor(robot, q, qd, qdd) @ robot.parameters + known_torque(robot, q, qd, qdd)
    M, C = mass_matrix(robot, q), coriolis_matrix(robot, q, qd)
    still = np.zeros_like(qd)
    torque_mujoco = np.array([judge.inverse_dynamics(*s) for s in zip(q, qd, qdd, strict=True)])
    M_mujoco = np.array([judge.mass_matrix(x) for x in q])
    energy_mujoco = np.array([judge.energy(*s) for s in zip(q, qd, strict=True)])
    ours = np.stack(energy(robot, q, qd), axis=1)
    smallest = float(np.linalg.eigvalsh(M)[:, 0].min())
    rate_error, power_error = _differenced(robot, judge, q, qd, qdd)
    bias = inverse_dynamics(robot, q, qd, still) - inverse_dynamics(robot, q, still, still)
    damping = robot.joint_parameters[:, 1] * qd + robot.joint_parameters[:, 2] * np.sign(qd)
    checks = (
        Check("Y·theta is mj_inverse", _relative(linear, torque_mujoco), EXACT),
        Check("inverse dynamics is mj_inverse", _relative(tau, torque_mujoco), EXACT),
        Check("mass matrix is MuJoCo's", _relative(M, M_mujoco), EXACT),
        Check("mass matrix is symmetric", _relative(M, M.transpose(0, 2, 1)), EXACT),
        Check(f"mass matrix is positive definite (smallest eigenvalue {smallest:.3g})", max(0.0, -smallest), 0.0),
        Check("C·qd is the velocity torque", _relative(np.einsum("tij,tj->ti", C, qd), bias - damping, of=tau), EXACT),
        Check("dM/dt = C + C^T", rate_error, DIFFERENCED),
        Check("energies are MuJoCo's", _relative(ours, energy_mujoco), EXACT),
        Check("d(energy)/dt is the power of the torque", power_error, DIFFERENCED),
        Check("inverse dynamics undoes forward dynamics", _relative(_there_and_back(robot, q, qd, tau), tau), EXACT),
    )
    massless = [name for name, p in zip(robot.bodies, robot.body_parameters, strict=True) if not p.any()]
    invalid = invalidities(robot.bodies, robot.body_parameters, massless=massless)
    return ModelCheck(robot.name, states, checks, tuple(invalid), robot.notes)
