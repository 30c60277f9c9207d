"""The equation of motion of a robot, for one sample (n,) or many (samples, n).

tau = M(q) q̈ + C(q, q̇) q̇ + g(q) + armature·q̈ + damping·q̇ + coulomb·sgn(q̇) + offset
    = Y(q, q̇, q̈) theta + tau_known
"""

import numpy as np
from numpy.typing import ArrayLike

from ..compiled import over_samples
from ..errors import DataError, ModelError
from ..robot.robot import Robot
from .kernels import adjoint as _adjoint
from .kernels import forward as _forward
from .kernels import newton_euler as _newton_euler
from .kernels import reference as _reference
from .kernels import regressor as _regressor
from .kernels import spatial as _spatial
from .samples import Array, is_one_sample, positions, rates

# A regressor this large is a mistake of the caller's; blocks of samples are the way.
MOST_BYTES_AT_ONCE = 8 << 30


def _torques(robot: Robot, bodies: Array, joints: Array, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> Array:
    fixed = (robot.links, robot.dofs, bodies, joints, robot.gravity)
    if is_one_sample(robot, q, qd, qdd):
        sample = np.empty(robot.n)
        if _newton_euler.one_sample(*fixed, q, qd, qdd, sample):
            return sample
    q, single = positions(robot, q)
    qd, qdd = rates(robot, "qd", qd, len(q)), rates(robot, "qdd", qdd, len(q))
    tau = np.empty_like(qd)
    over_samples(len(q), lambda a, b: _newton_euler.inverse_dynamics(*fixed, q[a:b], qd[a:b], qdd[a:b], tau[a:b]))
    return tau[0] if single else tau


def inverse_dynamics(robot: Robot, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> Array:
    """The torque that moves the robot so, with all its nominal parameters."""
    return _torques(robot, robot.body_parameters, robot.joint_parameters, q, qd, qdd)


def known_torque(robot: Robot, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> Array:
    """The part of the torque that is not to be identified: bodies and joint properties outside the layout."""
    return _torques(robot, *robot.known, q, qd, qdd)


def regressor(robot: Robot, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, out: Array | None = None) -> Array:
    """Y of shape (samples, n, parameters), or (n, parameters) for one sample, in the order of `parameter_names`."""
    q, single = positions(robot, q)
    qd, qdd = rates(robot, "qd", qd, len(q)), rates(robot, "qdd", qdd, len(q))
    shape = (len(q), robot.n, robot.layout.size)
    blank = False
    if out is None:
        if 8 * len(q) * robot.n * robot.layout.size > MOST_BYTES_AT_ONCE:
            raise DataError(
                f"a regressor of shape {shape} takes {8e-9 * np.prod(shape):.0f} GB; compute it in blocks of samples"
            )
        out, blank = np.zeros(shape), True
    elif out.shape != shape or out.dtype != np.float64 or not out.flags.c_contiguous:
        raise DataError(f"out must be a contiguous float64 array of shape {shape}, not {out.dtype} {out.shape}")
    fixed = (robot.links, robot.dofs, robot.columns, robot.property_codes, 10 * len(robot.layout.bodies), robot.gravity)
    over_samples(len(q), lambda a, b: _regressor.regressor(*fixed, q[a:b], qd[a:b], qdd[a:b], blank, out[a:b]))
    return out[0] if single else out


def reference_regressor(robot: Robot, q: ArrayLike, qd: ArrayLike, v: ArrayLike, a: ArrayLike) -> Array:
    """Y with M(q) a + C(q, q̇) v + g(q) + armature·a + damping·v + coulomb·sgn(v) + offset = Y theta + known part.

    C is `coriolis_matrix`, so that Ṁ − 2C is skew: what adaptive control of Slotine and Li needs (1987). With v = q̇ and
    a = q̈ it is `regressor`.
    """
    q, single = positions(robot, q)
    qd, v, a = (rates(robot, name, x, len(q)) for name, x in (("qd", qd), ("v", v), ("a", a)))
    Y = np.zeros((len(q), robot.n, robot.layout.size))
    fixed = (robot.links, robot.dofs, robot.columns, robot.property_codes, 10 * len(robot.layout.bodies), robot.gravity)
    over_samples(
        len(q),
        lambda i, j: _reference.reference_regressor(*fixed, q[i:j], qd[i:j], v[i:j], a[i:j], Y[i:j]),
    )
    return Y[0] if single else Y


def regressor_gradient(
    robot: Robot, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, weights: ArrayLike
) -> tuple[Array, Array, Array]:
    """Derivatives by q, q̇ and q̈ of a function whose derivative by the regressor is `weights` (samples, n, parameters).

    Exact, at the price of a few regressors; for trees of hinges and slides. sgn(q̇) counts as constant.
    """
    if robot.nq != robot.n:
        raise ModelError(f"{robot.name} has ball or free joints; the gradient is written for hinges and slides")
    q, single = positions(robot, q)
    qd, qdd = rates(robot, "qd", qd, len(q)), rates(robot, "qdd", qdd, len(q))
    G = np.ascontiguousarray(weights, dtype=np.float64).reshape(-1, robot.n, robot.layout.size)
    if len(G) != len(q):
        raise DataError(f"weights have {len(G)} samples and q has {len(q)}; give as many of each")
    out = np.empty((3, *q.shape))
    fixed = (robot.links, robot.dofs, robot.columns, robot.property_codes, 10 * len(robot.layout.bodies), robot.gravity)

    def work(a: int, b: int) -> None:
        states = (q[a:b], qd[a:b], qdd[a:b], G[a:b])
        _adjoint.regressor_gradient(*fixed, *states, out[0, a:b], out[1, a:b], out[2, a:b])

    over_samples(len(q), work)
    by_q, by_qd, by_qdd = out[:, 0] if single else out
    return by_q, by_qd, by_qdd


def gravity(robot: Robot, q: ArrayLike) -> Array:
    """g(q): the torque that holds the robot still."""
    q, single = positions(robot, q)
    still = np.zeros((len(q), robot.n))
    tau = _torques(robot, robot.body_parameters, np.zeros_like(robot.joint_parameters), q, still, still)
    return tau[0] if single else tau


def mass_matrix(robot: Robot, q: ArrayLike) -> Array:
    """M(q), armature included."""
    q, single = positions(robot, q)
    M = np.empty((len(q), robot.n, robot.n))
    fixed = (robot.links, robot.dofs, robot.body_parameters, robot.joint_parameters)
    over_samples(len(q), lambda a, b: _spatial.mass_matrix(*fixed, q[a:b], M[a:b]))
    return M[0] if single else M


def coriolis_matrix(robot: Robot, q: ArrayLike, qd: ArrayLike) -> Array:
    """C(q, q̇) in Christoffel form: C q̇ is the velocity torque, and Ṁ = C + Cᵀ."""
    q, single = positions(robot, q)
    qd = rates(robot, "qd", qd, len(q))
    C = np.empty((len(q), robot.n, robot.n))
    fixed = (robot.links, robot.dofs, robot.body_parameters)
    over_samples(len(q), lambda a, b: _spatial.coriolis_matrix(*fixed, q[a:b], qd[a:b], C[a:b]))
    return C[0] if single else C


def energy(robot: Robot, q: ArrayLike, qd: ArrayLike) -> tuple[Array, Array]:
    """Kinetic energy (rotors included) and potential energy, in J."""
    q, single = positions(robot, q)
    qd = rates(robot, "qd", qd, len(q))
    kinetic, potential = np.empty(len(q)), np.empty(len(q))
    fixed = (robot.links, robot.dofs, robot.body_parameters, robot.joint_parameters, robot.gravity)
    over_samples(len(q), lambda a, b: _spatial.energy(*fixed, q[a:b], qd[a:b], kinetic[a:b], potential[a:b]))
    return (kinetic[0], potential[0]) if single else (kinetic, potential)


def forward_dynamics(robot: Robot, q: ArrayLike, qd: ArrayLike, tau: ArrayLike) -> Array:
    """The acceleration that a torque causes: q̈ = M⁻¹ (tau − C q̇ − g − friction)."""
    q, single = positions(robot, q)
    qd, tau = rates(robot, "qd", qd, len(q)), rates(robot, "tau", tau, len(q))
    qdd = np.empty_like(qd)
    fixed = (robot.links, robot.dofs, robot.body_parameters, robot.joint_parameters, robot.gravity)
    failures: list[int] = []

    def work(a: int, b: int) -> None:
        bad = _forward.forward_dynamics(*fixed, q[a:b], qd[a:b], tau[a:b], qdd[a:b])
        if bad >= 0:
            failures.append(a + bad)

    over_samples(len(q), work)
    if failures:
        raise ModelError(
            f"the mass matrix of {robot.name} is not positive definite at sample {min(failures)}; "
            "its inertial parameters are not physical (see `steelyard check`)"
        )
    return qdd[0] if single else qdd
