"""A robot that balances in simulation, pose after pose, with sensors like real ones: recordings with a known answer."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import mujoco
import numpy as np
from numpy.typing import NDArray

from ..data.recording import Recording
from ..errors import ModelError, OptionError
from .balancing import HOLD, STEP, Balance, Load, Plant, balance, plant, true_upper_body
from .poses import ACCELERATION, LABEL, Accuracy
from .posture import home_height
from .stance import Stance

Array = NDArray[np.float64]
_FALLEN = 0.5  # rad from where it should be


@dataclass(frozen=True)
class StandingSensors:
    """White noise of every sample, besides what `accuracy` draws once a pose or once for all."""

    torque: float = 0.3  # N·m
    position: float = 2e-4  # rad
    acceleration: float = 0.05  # m/s²
    felt_angle: float = 1e-3  # rad, of the pitch that the regulator sees
    felt_rate: float = 5e-3  # rad/s
    accuracy: Accuracy = field(default_factory=Accuracy)
    rate_hz: float = 125.0

    def __post_init__(self) -> None:
        for name in ("torque", "position", "acceleration", "felt_angle", "felt_rate"):
            if not 0 <= getattr(self, name) < np.inf:
                raise OptionError(f"noise of {name} is {getattr(self, name):g}; give a finite number from 0")
        if not 1 <= self.rate_hz <= 1.0 / STEP:
            raise OptionError(f"the rate is {self.rate_hz:g} Hz; give one from 1 to {1 / STEP:g}")


@dataclass(frozen=True)
class Target:
    """A pose to stand in: height as a share of the home height, pitch and roll in rad."""

    height: float = 0.9
    pitch: float = 0.0
    roll: float = 0.0


@dataclass(frozen=True, eq=False)
class Demonstration:
    """What the sensors said, and the truth by MuJoCo."""

    recording: Recording
    mass: float
    com: Array  # (3,) of the upper body with its load, in the trunk's frame


def _felt(machine: Plant, data: mujoco.MjData, hold: Balance) -> Array:
    """z = (x, θ, ẋ, θ̇): the axles' way along the heading, and the trunk's pitch from the one wanted."""
    stance, v = machine.stance, machine.free_v
    R = data.xmat[machine.trunk].reshape(3, 3)
    across = R @ stance.lateral
    ahead = np.cross(across, (0.0, 0.0, 1.0))
    ahead /= np.linalg.norm(ahead)
    wheels = [machine.model.body(leg.wheel_body).id for leg in stance.legs]
    start = hold.qpos[machine.free_q : machine.free_q + 3]
    lever = data.xpos[machine.trunk] - np.mean(data.xpos[wheels], axis=0)
    up, level = R.T @ (0.0, 0.0, 1.0), hold.level.T @ (0.0, 0.0, 1.0)
    pitch = np.arctan2(-up @ stance.forward, up[2]) - np.arctan2(-level @ stance.forward, level[2])
    rate = float(data.qvel[v + 3 : v + 6] @ stance.lateral)
    turned = np.cross(across, lever) @ ahead
    way = (data.xpos[machine.trunk] - start) @ ahead - turned * pitch
    return np.array([way, pitch, data.qvel[v : v + 3] @ ahead - turned * rate, rate])


def stand(
    machine: Plant,
    hold: Balance,
    seconds: float,
    settle: float,
    sensors: StandingSensors,
    rng: np.random.Generator,
) -> tuple[Array, Array, Array]:
    """Balance in a pose; what joints (q, tau) and accelerometer did after settling, without the sensors' noise."""
    model, data = machine.model, mujoco.MjData(machine.model)
    data.qpos[:] = hold.qpos
    every = max(1, round(1.0 / (sensors.rate_hz * STEP)))
    felt = np.array([0.0, sensors.felt_angle, 0.0, sensors.felt_rate])
    steps, skipped = round((settle + seconds) / STEP), round(settle / STEP)
    q, tau, force = [], [], []
    mujoco.mj_forward(model, data)
    for k in range(steps):
        if k % HOLD == 0:
            z = _felt(machine, data, hold)
            if abs(z[1]) > _FALLEN or not np.isfinite(z).all():
                raise ModelError(
                    f"{machine.stance.robot.name} fell over after {k * STEP:.2f} s; lighten the load or move the pose"
                )
            turning = data.qvel[machine.free_v + 3 : machine.free_v + 6] @ data.xmat[machine.trunk].reshape(3, 3)[2]
            push = -hold.gain @ (z + felt * rng.normal(size=4))
            data.ctrl[:] = hold.command + hold.drive * push + hold.turn * turning
        mujoco.mj_step(model, data)
        if k >= skipped and k % every == 0:
            q.append(data.qpos[machine.q].copy())
            tau.append(data.actuator_force[machine.motors].copy())
            force.append(data.sensordata[machine.accelerometer].copy())
    return np.array(q), np.array(tau), np.array(force)


def demonstrate(
    stance: Stance,
    targets: Sequence[Target],
    rng: np.random.Generator,
    load: Load | None = None,
    sensors: StandingSensors | None = None,
    seconds: float = 4.0,
    settle: float = 3.0,
    coupling: float = 0.0,
    progress: Callable[[int, int], None] | None = None,
) -> Demonstration:
    """Stand in every pose in turn, each from its own start, and record it under its number in channel `pose`.

    The load is not told to the controller. With a coupled drive, the motors' torques are recorded: τ₂ less k τ₁.
    """
    sensors, machine = sensors or StandingSensors(), plant(stance, load)
    joints, height = len(stance.joints), home_height(stance)
    accuracy = sensors.accuracy
    torque_bias = accuracy.torque_bias * rng.normal(size=joints)
    position_bias = accuracy.position_bias * rng.normal(size=joints)
    force_bias = accuracy.acceleration_bias * rng.normal(size=3)
    parts = []
    for k, target in enumerate(targets):
        hold = balance(machine, target.height * height, target.pitch, target.roll)
        q, tau, force = stand(machine, hold, seconds, settle, sensors, rng)
        for leg in stance.legs:
            tau[:, stance.column(leg.knee)] -= coupling * tau[:, stance.column(leg.hip)]
        friction = accuracy.friction * rng.normal(size=joints)
        parts.append(
            (
                q + position_bias + sensors.position * rng.normal(size=q.shape),
                tau + torque_bias + friction + sensors.torque * rng.normal(size=tau.shape),
                (force + force_bias + sensors.acceleration * rng.normal(size=force.shape)) @ stance.imu,
                np.full(len(q), float(k)),
            )
        )
        if progress is not None:
            progress(k + 1, len(targets))
    q, tau, force, label = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    every = max(1, round(1.0 / (sensors.rate_hz * STEP))) * STEP
    recording = Recording(
        every * np.arange(len(q), dtype=np.float64),
        q,
        tau,
        joints=stance.joints,
        more={ACCELERATION: force, LABEL: label},
    )
    return Demonstration(recording, *true_upper_body(machine))
