"""Output error by rollouts against `mujoco.sysid`, in one run: `python benchmarks/against_mujoco_sysid.py`.

Needs `pip install "mujoco[sysid]"`. MuJoCo itself is the robot (the rig: PD control, noise on the measured positions),
so that nobody has the better model; both get the same recording, the same known controller, the same wrong model to
begin with and the same parameters to find, and both fit the measured positions alone:

- joints: rotor inertia and damping of every joint, the bodies known;
- all: every body's inertia as well, of which the motion shows only combinations, so that base parameters are compared.

mujoco.sysid is used as its documentation and tests do: a `Parameter` with a modifier for a joint property,
`body_inertia_param` with pseudo-inertias for a body, `build_residual_fn`, `optimize`, all settings its own but the
most iterations (of its 200, `--iterations` are waited for); rollouts run in as many threads as there are processors.
Its own modifier for pseudo-inertias fails in MuJoCo 4.0.0 (the compiler refuses the inertia of zero that it writes);
the one here, given by its argument `modifier`, writes principal moments, and spares it two compilations a body. It is
tried with and without x_scale="jac", which it offers for badly scaled problems; the faster of those that came near to
the positions is what ours are compared with. CLOE simulates in MuJoCo (`rollout=MuJoCo()`), and in the loop of our
own (compiled, with variational equations), which takes damping at the end of a step where the recording says that
MuJoCo did so. A rollout is one simulation of the whole recording; a slope by the variational equations counts as one.
"""

import argparse
import contextlib
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import mujoco
import numpy as np
from mujoco import sysid

import steelyard as sy
from closed_loop import path, with_joints, wrong
from steelyard.data.recording import Recording
from steelyard.excitation.trajectory import Fourier
from steelyard.identification.closed_loop.differences import differenced
from steelyard.identification.closed_loop.loops import Loop
from steelyard.identification.closed_loop.mujoco_rollout import MuJoCo
from steelyard.identification.conclude import estimate
from steelyard.identification.estimators import CLOE
from steelyard.identification.model import Experiment
from steelyard.identification.problem import build_problem
from steelyard.robot.export import export_model
from steelyard.robot.inertia import from_mass_com_inertia
from steelyard.simulation.controllers import Controller
from steelyard.simulation.rig import Noise, run_rig
from steelyard.simulation.rig_control import pd_for


@dataclass(frozen=True)
class Task:
    """What both sides are given."""

    truth: sy.Robot
    start: sy.Robot
    controller: Controller
    recording: Recording
    bodies: bool  # whether they are sought, too
    deviation: float  # rad, of the noise


@dataclass(frozen=True)
class Answer:
    """What one side found."""

    name: str
    robot: sy.Robot
    seconds: float
    iterations: int
    rollouts: int


def task_of(name: str, bodies: bool, seconds: float, degrees: float, seed: int) -> Task:
    truth, rng = with_joints(name), np.random.default_rng(seed)
    start = wrong(truth, rng, 0.15)
    if not bodies:
        theta = truth.parameters.copy()
        joints = slice(10 * len(truth.layout.bodies), None)
        theta[joints] = start.parameters[joints]
        start = truth.with_parameters(theta)
    trajectory = path(truth, seconds, 0.3)
    controller = pd_for(truth, trajectory, gravity=False)
    deviation = float(np.deg2rad(degrees))
    run = run_rig(truth, trajectory, controller=controller, publish_rate_hz=500.0, noise=Noise(deviation), rng=rng)
    return Task(truth, start, controller, run.recording, bodies, deviation)


# mujoco.sysid


def spec_of(task: Task) -> mujoco.MjSpec:
    """The wrong model with the known controller as actuators; what is locked is welded."""
    robot = task.start
    spec = mujoco.MjSpec.from_string(_exported(robot))
    for joint in list(spec.joints):
        if joint.name not in robot.dof_names:
            spec.delete(joint)
    for key in list(spec.keys):
        spec.delete(key)
    kp, _, kd = task.controller.gains(robot.n)
    limit = task.controller.limits(robot)
    for k, name in enumerate(robot.dof_names):
        motor = spec.add_actuator(name=f"motor of {name}", target=name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
        motor.gaintype, motor.biastype = mujoco.mjtGain.mjGAIN_FIXED, mujoco.mjtBias.mjBIAS_AFFINE
        motor.gainprm[0] = 1.0
        motor.biasprm[1], motor.biasprm[2] = -kp[k], -kd[k]
        if np.isfinite(limit[k]):
            motor.forcelimited, motor.forcerange = mujoco.mjtLimited.mjLIMITED_TRUE, [-limit[k], limit[k]]
        spec.add_sensor(
            name=f"{name} position", type=mujoco.mjtSensor.mjSENS_JOINTPOS, objtype=mujoco.mjtObj.mjOBJ_JOINT,
            objname=name,
        )  # fmt: skip
    return spec


def _exported(robot: sy.Robot) -> str:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "robot.xml"
        export_model(robot, file)
        return file.read_text()


def into_body(name: str) -> Callable[[mujoco.MjSpec, sysid.Parameter], None]:
    """Writes a pseudo-inertia into a body."""

    def modifier(spec: mujoco.MjSpec, parameter: sysid.Parameter) -> None:
        pi = sysid.model_modifier.pi_from_theta(parameter.value)
        mass, com = pi[0], pi[1:4] / pi[0]
        inertia = pi[4:].reshape(3, 3) - mass * (com @ com * np.eye(3) - np.outer(com, com))
        moments, axes = np.linalg.eigh(inertia)
        axes[:, 2] *= np.sign(np.linalg.det(axes))
        body, quat = spec.body(name), np.empty(4)
        mujoco.mju_mat2Quat(quat, axes.ravel())
        body.mass, body.ipos, body.inertia, body.iquat = mass, com, moments, quat

    return modifier


def sought(task: Task, spec: mujoco.MjSpec) -> sysid.ParameterDict:
    """The parameters, with bounds that hold start and truth well inside."""
    robot, found = task.start, sysid.ParameterDict()

    def into(name: str, prop: str) -> Callable[[mujoco.MjSpec, sysid.Parameter], None]:
        def modifier(spec: mujoco.MjSpec, parameter: sysid.Parameter) -> None:
            if prop == "damping":
                spec.joint(name).damping[0] = parameter.value[0]
            else:
                spec.joint(name).armature = parameter.value[0]

        return modifier

    for k, name in enumerate(robot.dof_names):
        for row, prop in enumerate(("armature", "damping")):
            value = float(robot.joint_parameters[k, row])
            found.add(sysid.Parameter(f"{name} {prop}", value, 0.1 * value, 10 * value, modifier=into(name, prop)))
    if task.bodies:
        model = spec.compile()
        for body in robot.layout.bodies:
            kind = sysid.InertiaType.Pseudo
            found.add(sysid.body_inertia_param(spec, model, body, inertia_type=kind, modifier=into_body(body)))
    return found


def read_back(task: Task, model: mujoco.MjModel) -> sy.Robot:
    """A compiled model's parameters in our order."""
    robot = task.start
    theta = robot.parameters.copy()
    for name in robot.layout.bodies:
        body = model.body(name)
        R = np.empty(9)
        mujoco.mju_quat2Mat(R, body.iquat)
        R = R.reshape(3, 3)
        theta[robot.layout.body(name)] = from_mass_com_inertia(
            float(body.mass[0]), body.ipos, R @ np.diag(body.inertia) @ R.T
        )
    dofs = [model.joint(name).dofadr[0] for name in robot.dof_names]
    theta[robot.layout.block("armature")] = model.dof_armature[dofs]
    theta[robot.layout.block("damping")] = model.dof_damping[dofs]
    return robot.with_parameters(theta)


def by_mujoco(task: Task, **settings: object) -> Answer:
    recording, spec = task.recording, spec_of(task)
    model = spec.compile()
    data = mujoco.MjData(model)
    addresses = [model.joint(name).qposadr[0] for name in task.start.dof_names]
    data.qpos[addresses] = recording.more["q_d"][0]
    initial = sysid.create_initial_state(model, data.qpos, data.qvel, data.act)
    kp, _, kd = task.controller.gains(task.start.n)
    control = sysid.TimeSeries(recording.t, kp * recording.more["q_d"] + kd * recording.more["qd_d"])
    # Positions are observed in the state: a position sensor of MuJoCo's lags it by a step in their time series.
    seen = [(f"{name}_qpos", 1, sysid.SignalType.MjStateQPos) for name in task.start.dof_names]
    sensed = sysid.TimeSeries.from_custom_map(recording.t, recording.q, seen)
    sequences = sysid.ModelSequences("arm", spec, "run", initial, control, sensed, allow_missing_sensors=True)
    count = 0

    def build(parameters: sysid.ParameterDict, spec: mujoco.MjSpec) -> mujoco.MjModel:
        nonlocal count
        count += 1
        return sysid.apply_param_modifiers(parameters, spec)

    parameters = sought(task, spec)
    began = time.perf_counter()
    residual = sysid.build_residual_fn(models_sequences=[sequences], build_model=build)
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):  # it prints each iteration
        found, result = sysid.optimize(parameters, residual, verbose=False, **settings)
    seconds = time.perf_counter() - began
    robot = read_back(task, sysid.apply_param_modifiers(found, spec))
    told = ", ".join(f"{key}={value}" for key, value in settings.items() if key != "max_iters")
    name = "mujoco.sysid" + (f", {told}" if told else "")
    done = len(result.extras.get("objective", []))
    if done > int(str(settings["max_iters"])):
        name += " (NOT finished)"
    return Answer(name, robot, seconds, done, count)


# Ours


def by_cloe(task: Task, name: str, method: CLOE) -> Answer:
    robot = task.start
    count = 10 * len(robot.layout.bodies)
    names = robot.parameter_names
    fixed = {} if task.bodies else dict(zip(names[:count], robot.parameters[:count], strict=True))
    began = time.perf_counter()
    problem = build_problem(robot, Experiment(differenced(task.recording), None, task.recording), fixed=fixed)
    found = estimate(problem, method)
    seconds = time.perf_counter() - began
    if not found.converged:
        name += f" (NOT converged: {found.message})"
    return Answer(name, found.robot, seconds, found.iterations, found.about["fit"]["simulations"])


# What both are judged by


def torque_error(task: Task, robot: sy.Robot, other: Fourier) -> float:
    t = np.linspace(0.0, other.duration, 2000)
    motion = other.sample(t)
    true = sy.inverse_dynamics(task.truth, *motion)
    return float(np.linalg.norm(sy.inverse_dynamics(robot, *motion) - true) / np.linalg.norm(true))


def position_error(task: Task, robot: sy.Robot, other: Fourier) -> float:
    """RMS over a motion that nobody was shown, rad, MuJoCo with the found parameters against MuJoCo with the true."""
    one, two = (
        run_rig(task.truth, other, truth=moved, controller=task.controller, publish_rate_hz=500.0).recording.q
        for moved in (task.truth, robot)
    )
    return float(np.sqrt(np.mean((one - two) ** 2)))


def parameter_error(task: Task, robot: sy.Robot) -> float:
    if task.bodies:
        base = sy.base_parameters(task.truth)
        a, b = base.reduce(robot.parameters), base.reduce(task.truth.parameters)
    else:
        k = 10 * len(task.truth.layout.bodies)
        a, b = robot.parameters[k:], task.truth.parameters[k:]
    return float(np.linalg.norm(a - b) / np.linalg.norm(b))


def left(task: Task, robot: sy.Robot) -> float:
    """What a simulation in MuJoCo with these parameters leaves of the positions, in deviations of their noise."""
    problem = build_problem(robot, Experiment(differenced(task.recording), None, task.recording))
    (piece,) = MuJoCo().pieces(problem.model, problem.experiments, Loop())
    return float(np.sqrt(np.mean((piece.run(robot.parameters).q - task.recording.q) ** 2))) / task.deviation


def rival(task: Task, answers: list[Answer]) -> Answer:
    """The fastest of those that come as near to the positions as any of them does."""
    reached = [left(task, answer.robot) for answer in answers]
    good = [answer for answer, q in zip(answers, reached, strict=True) if q < 1.01 * min(reached)]
    return min(good, key=lambda answer: answer.seconds)


def compare(name: str, bodies: bool, seconds: float, degrees: float, iterations: int) -> None:
    task = task_of(name, bodies, seconds, degrees, seed=0)
    a = 0.3 * np.random.default_rng(2).normal(size=(task.truth.n, 5))
    other = Fourier(seconds, task.truth.home, a - a.mean(axis=1, keepdims=True), 0 * a, task.truth.dof_names)
    theirs = [by_mujoco(task, max_iters=iterations), by_mujoco(task, max_iters=iterations, x_scale="jac")]
    ours = []
    shape = "log-cholesky" if bodies else "base"  # MuJoCo moves nothing but bodies that can exist
    for label, method in (
        ("CLOE, MuJoCo's rollouts", CLOE(rollout=MuJoCo(), parametrisation=shape)),
        ("CLOE, our loop", CLOE(parametrisation=shape)),
    ):
        by_cloe(task, "", replace(method, repeats=1))  # kernels are read from disk
        ours.append(by_cloe(task, label, method))
    best = rival(task, theirs)
    what = "bodies and joints" if bodies else "joints"
    print(f"\n{name}, {what}, {seconds:g} s at 500 Hz, {degrees:g} degrees of noise; begun ", end="")
    print(f"{100 * parameter_error(task, task.start):.0f} % wrong\n")
    print("| | s | times as fast | iterations | rollouts | q left, noise = 1 | parameters | torque | position |")
    print("|---" * 9 + "|")
    for side in (*theirs, *ours):
        print(
            f"| {side.name} | {side.seconds:.2f} | {best.seconds / side.seconds:.1f} | {side.iterations} | "
            f"{side.rollouts} | {left(task, side.robot):.4f} | {100 * parameter_error(task, side.robot):.2g} % | "
            f"{100 * torque_error(task, side.robot, other):.2g} % | "
            f"{position_error(task, side.robot, other) / task.deviation:.2g} |",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--robot", default="panda")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--degrees", type=float, default=1e-3)
    parser.add_argument("--only", choices=("joints", "all"))
    parser.add_argument("--iterations", type=int, default=30, help="of mujoco.sysid at most; its own default is 200")
    arguments = parser.parse_args()
    for what in ("joints", "all"):
        if arguments.only in (None, what):
            compare(
                arguments.robot, what == "all", arguments.seconds, arguments.degrees, arguments.iterations,
            )  # fmt: skip


if __name__ == "__main__":
    main()
