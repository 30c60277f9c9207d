"""What a recording shows once it is held against a model: delay, units and signs of torque, mounting, excitation.

Torques and motion go through the same low-pass and are thinned to rows whose noise is about independent; then

    tau(t + delay) = Y(q, q̇, q̈) beta

with every inertial parameter, damping, dry friction and offset free, so that nothing rests on the model's values but
where it is said. The delay is a Gauss-Newton step on −d(Y beta)/dt, repeated.
"""

from dataclasses import dataclass, replace

import numpy as np

from ..dynamics import base_parameters, blind_directions, inverse_dynamics, regressor
from ..dynamics.base_parameters import BaseParameters
from ..robot.parameters import JOINT_PROPERTIES
from ..robot.robot import Robot, frozen
from .findings import Finding
from .preprocess import automatic_decimation
from .recording import Recording
from .spectrum import MIN_ROWS
from .steps import Array, Mask, even_rate, in_use

MOST_ROWS = 3000
# Singular values of the base regressor, columns of length one, below this share of the largest are blind.
BLIND = 1e-3
POOR_CONDITION = 300.0
# Torque against the model's: outside this range something is wrong with units, sign or side of the gear.
USUAL_SCALE = (0.4, 2.5)
# The model must explain this share of a joint's torque before its scale means anything.
EXPLAINS = 0.5
SURE = 0.8  # ... and this before a sign is beyond doubt
MISFIT = 0.3  # share of a joint's torque that a model may leave
TILT_DEGREES = 5.0
LATE_SECONDS = 2e-3


@dataclass(frozen=True, eq=False)
class Thinned:
    """Rows of motion and torque with noise that is about independent."""

    t: Array
    q: Array
    qd: Array
    qdd: Array
    tau: Array
    robot: Robot
    base: BaseParameters
    Y: Array  # (rows, n, rank)
    use: Mask  # (rows, n)


def thinned(recording: Recording, robot: Robot) -> Thinned | None:
    """A preprocessed recording, low-passed and thinned, with the base regressor; None where too little is left."""
    rate = even_rate(recording, "the model's part of the inspection")
    channels = [x for x in (recording.q, recording.qd, recording.qdd, recording.tau) if x is not None]
    t, use = recording.t, in_use(recording)
    method = automatic_decimation(recording)
    if method is not None:
        rows = method.rows(len(recording), rate)
        channels = [method.apply(x, rate) for x in channels]
        t, use = t[rows], method.usable(use, rate)
    pick = np.flatnonzero(use.any(axis=1))
    pick = pick[:: max(1, -(-len(pick) // MOST_ROWS))]
    full = robot.with_layout(bodies=robot.bodies, properties=JOINT_PROPERTIES)
    base = base_parameters(full)
    if len(pick) < MIN_ROWS or use[pick].sum() < 2 * base.rank:
        return None
    q, qd, qdd, tau = (np.ascontiguousarray(x[pick]) for x in channels)
    return Thinned(t[pick], q, qd, qdd, tau, full, base, base.columns(regressor(full, q, qd, qdd)), use[pick])


def _solve(Y: Array, y: Array, use: Mask) -> tuple[Array, Array, Array]:
    """Least squares, each joint by its own residual: the solution, residuals, and weights (0 for rows not used)."""
    n, columns = Y.shape[1:]
    norms = np.linalg.norm(Y.reshape(-1, columns), axis=0)
    norms[norms == 0] = 1.0
    size = np.ones(n)
    least = 1e-9 + 1e-6 * float(np.abs(y).max())
    for _ in range(3):
        weight = use / size
        A, b = (Y / norms * weight[:, :, None]).reshape(-1, columns), (y * weight).ravel()
        x = np.linalg.lstsq(A, b, rcond=1e-8)[0] / norms
        left = (y - Y @ x) * use
        size = np.maximum(np.sqrt((left**2).sum(axis=0) / np.maximum(use.sum(axis=0), 1)), least)
    return x, left, use / size


def _deviation(A: Array, left: Array) -> Array:
    """Standard deviations of a least-squares answer, wider where residuals are not independent."""
    r = left.ravel()
    ahead = float((left[1:] * left[:-1]).sum() / max((left**2).sum(), 1e-300))
    wider = (1 + max(ahead, 0.0)) / max(1 - max(ahead, 0.0), 0.02)
    variance = float(r @ r) / max(len(r) - A.shape[1], 1) * wider
    return np.asarray(np.sqrt(np.maximum(np.diag(np.linalg.pinv(A.T @ A)) * variance, 0.0)))


def excitation(data: Thinned) -> tuple[list[Finding], dict[str, float]]:
    """How well conditioned the base regressor is, and what it does not see."""
    W = data.Y[data.use]
    norms = np.linalg.norm(W, axis=0)
    seen = norms > 1e-9 * norms.max(initial=1e-300)
    s = np.linalg.svd(W[:, seen] / norms[seen], compute_uv=False)
    condition = float(s[0] / s[-1]) if s[-1] > 0 and seen.all() else float("inf")
    found = []
    blind = blind_directions(data.base.short_names, W, BLIND)
    for direction in blind[:6]:
        text = f"the motion does not show {direction}" + (f" (one of {len(blind)})" if len(blind) > 1 else "")
        remedy = "design an excitation, `steelyard excite`; such combinations keep the model's values"
        found.append(Finding("warning", "blind", text, remedy, number=direction.visibility))
    if not blind and condition > POOR_CONDITION:
        text = f"the excitation is weak: condition number {condition:.3g} of the base regressor, columns of length one"
        found.append(
            Finding("warning", "condition", text, "design an excitation, `steelyard excite`", number=condition)
        )
    return found, {"condition": condition, "base_parameters": float(data.base.rank)}


def delay(data: Thinned) -> tuple[list[Finding], dict[str, float | None]]:
    """How late torque is stamped against motion, with what it may be wrong by."""
    if len(data.t) < 2 * MIN_ROWS:
        return [], {}
    late, deviation = 0.0, np.inf
    for _ in range(4):
        tau = np.stack([np.interp(data.t + late, data.t, x) for x in data.tau.T], axis=1)
        inner = slice(3, -3)
        beta, _, weight = _solve(data.Y[inner], tau[inner], data.use[inner])
        modelled = data.Y @ beta
        slope = np.gradient(modelled, data.t, axis=0)[inner]
        # The delay among all parameters, so that damping does not pass for one: tau = Y beta − late · d(Y beta)/dt.
        A = np.concatenate([data.Y[inner], -slope[:, :, None]], axis=2) * weight[:, :, None]
        norms = np.linalg.norm(A.reshape(-1, A.shape[2]), axis=0)
        norms[norms == 0] = 1.0
        A = (A / norms).reshape(-1, A.shape[2])
        b = (tau[inner] * weight).ravel()
        x = np.linalg.lstsq(A, b, rcond=1e-8)[0]
        late += float(x[-1] / norms[-1])
        deviation = float(_deviation(A, (b - A @ x).reshape(-1, data.tau.shape[1]))[-1] / norms[-1])
        if not abs(late) < 0.2 * (data.t[-1] - data.t[0]):
            return [], {"torque_delay_s": None, "torque_delay_deviation_s": None}
    found = []
    if abs(late) > max(LATE_SECONDS, 4 * deviation):
        side = "behind" if late > 0 else "before"
        text = f"torque is {1e3 * abs(late):.2g} ± {2e3 * deviation:.1g} ms {side} the motion"
        remedy = f"align it: AlignTorque({late:.3g}), or log both with one clock"
        found.append(Finding("warning", "delay", text, remedy, number=late))
    return found, {"torque_delay_s": late, "torque_delay_deviation_s": deviation}


def misfit(data: Thinned) -> tuple[list[Finding], dict[str, list[float]]]:
    """What the best rigid model with this structure leaves of each joint's torque."""
    _, left, _ = _solve(data.Y, data.tau, data.use)
    count = np.maximum(data.use.sum(axis=0), 1)
    size = np.sqrt((data.tau**2 * data.use).sum(axis=0) / count)
    rms = np.sqrt((left**2).sum(axis=0) / count)
    share = rms / np.where(size > 0, size, 1.0)
    found = []
    for j in np.flatnonzero(share > MISFIT):
        text = f"the best rigid model with dry friction leaves {100 * share[j]:.2g} % of the torque"
        remedy = "noise, another kind of friction, coupled motors, or a column that belongs to another joint"
        found.append(Finding("warning", "misfit", text, remedy, data.robot.dof_names[j], number=float(share[j])))
    return found, {"torque_residual": rms.tolist(), "torque_residual_share": share.tolist()}


def torque_scale(data: Thinned) -> tuple[list[Finding], dict[str, list[float | None]]]:
    """Torque against the model's own inverse dynamics, joint by joint: tau = scale · tau_model + friction + offset."""
    frictionless = np.zeros_like(data.robot.joint_parameters)
    frictionless[:, 0] = data.robot.joint_parameters[:, 0]
    bare = replace(data.robot, joint_parameters=frozen(frictionless))
    model = inverse_dynamics(bare, data.q, data.qd, data.qdd)
    scales: list[float | None] = []
    explained = []
    for j in range(data.robot.n):
        rows = data.use[:, j]
        qd, tau = data.qd[rows, j], data.tau[rows, j]
        rest = np.stack([qd, np.sign(qd), np.ones(len(qd))], axis=1)
        A = np.column_stack([model[rows, j], rest])
        norms = np.linalg.norm(A, axis=0)
        norms[norms == 0] = 1.0
        x = np.linalg.lstsq(A / norms, tau, rcond=1e-8)[0]
        left = tau - A / norms @ x
        without = tau - rest @ np.linalg.lstsq(rest, tau, rcond=None)[0]
        share = 1 - float(left @ left) / max(float(without @ without), 1e-300)
        scale = float(x[0] / norms[0])
        explained.append(share)
        scales.append(scale if share > EXPLAINS and np.isfinite(scale) and scale != 0 else None)
    return _said_of_scales(data.robot.dof_names, scales, explained), {"torque_scale": scales}


def _said_of_scales(joints: tuple[str, ...], scales: list[float | None], explained: list[float]) -> list[Finding]:
    """Most joints out of scale are a fault of the recording; one may be the model's or a payload's."""
    known = [scale for scale in scales if scale is not None]
    odd = [scale for scale in known if not USUAL_SCALE[0] < abs(scale) < USUAL_SCALE[1]]
    severity = "error" if 2 * len(odd) > len(known) else "warning"
    found = []
    for joint, scale, share in zip(joints, scales, explained, strict=True):
        if scale is None:
            continue
        if scale < 0:
            text = f"torque has the opposite sign of the model's (scale {scale:.3g})"
            remedy = "flip the joint's torque, or its position and velocity, in the mapping"
            found.append(Finding("error" if share > SURE else "warning", "sign", text, remedy, joint, number=scale))
        elif scale in odd:
            text = f"torque is {scale:.3g} times the model's: no joint torque in N·m, a payload, or another robot"
            motor = f"if it is a motor's, its gear ratio is near {1 / scale:.3g}; " if scale < 1 else ""
            remedy = f"{motor}if it is a current, a unit of it is near {1 / scale:.3g} N·m"
            found.append(Finding(severity, "scale", text, remedy, joint, number=scale))
    middle = float(np.median(known)) if known else 1.0
    if not found and not 0.7 < middle < 1.4:
        text = f"torques are {middle:.3g} times the model's, in the middle of all joints"
        found.append(Finding("note", "scale", text, "check gear ratios and torque constants", number=middle))
    return found


def mounting(data: Thinned) -> tuple[list[Finding], dict[str, float | list[float] | None]]:
    """The gravity that suits the torques best, the model's masses taken as true: torque is linear in it.

    tau − tau(g = 0) = Σ_k g_k ∂tau/∂g_k + friction + offset
    """
    nominal = data.robot.gravity
    size = float(np.linalg.norm(nominal))
    if not size > 0:
        return [], {}
    n = data.robot.n
    rows = len(data.q)
    weightless = replace(data.robot, gravity=frozen(np.zeros(3)))
    free = inverse_dynamics(weightless, data.q, data.qd, data.qdd)
    A = np.zeros((rows, n, 3 + 3 * n))
    for k in range(3):
        pulled = replace(data.robot, gravity=frozen(np.eye(3)[k]))
        A[:, :, k] = inverse_dynamics(pulled, data.q, data.qd, data.qdd) - free
    for j in range(n):
        A[:, j, 3 + j], A[:, j, 3 + n + j], A[:, j, 3 + 2 * n + j] = data.qd[:, j], np.sign(data.qd[:, j]), 1.0
    x, left, weight = _solve(A, data.tau - free, data.use)
    g = x[:3]
    deviation = _deviation((A * weight[:, :, None]).reshape(-1, A.shape[2]), left * weight)[:3]
    length = float(np.linalg.norm(g))
    if not (np.isfinite(length) and length > 0):
        return [], {}
    angle = float(np.degrees(np.arccos(np.clip(g @ nominal / length / size, -1, 1))))
    unsure = float(np.degrees(2 * np.linalg.norm(deviation) / length))
    found = []
    if angle > max(TILT_DEGREES, 2 * unsure) and unsure < 45 and 0.3 < length / size < 3:
        text = (
            f"gravity {np.round(g, 2).tolist()} m/s² suits the torques best, {angle:.2g} ± {max(unsure, 0.1):.2g}° "
            "from the model's: the robot may be mounted on a slope, or masses or signs of the model are wrong"
        )
        found.append(Finding("warning", "mounting", text, "give --mounting or --gravity", number=angle))
    return found, {"gravity": g.tolist(), "gravity_angle_degrees": angle, "gravity_angle_deviation_degrees": unsure}
