"""The closed loop: against MuJoCo, against closed forms, and what sensors add."""

import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import mujoco
import numpy as np
import pytest

import steelyard as sy
from steelyard.cli.main import main
from steelyard.data.recording import read_npz, save_recording
from steelyard.dynamics import energy
from steelyard.dynamics.kernels.single import workspace
from steelyard.excitation.exchange import write_trajectory
from steelyard.excitation.splines import PointToPoint
from steelyard.excitation.trajectory import Fourier
from steelyard.physics.conditions import LoadDependent, Temperature
from steelyard.physics.friction import Coulomb, CoulombViscous, LuGre, NoFriction, Stribeck, friction_named
from steelyard.physics.transmission import FlexibleJoint, harmonic_drive, modes
from steelyard.robot.joint_frames import joint_frames
from steelyard.robot.payload import with_payload
from steelyard.robot.states import random_states
from steelyard.simulation.cautions import SaturationWarning, StepWarning
from steelyard.simulation.closed_loop import record, simulate
from steelyard.simulation.controllers import Controller, computed_torque, pid_for
from steelyard.simulation.kernels.loop import slope
from steelyard.simulation.loop import ClosedLoop, SimulationError
from steelyard.simulation.reference import reference_from_samples, reference_of
from steelyard.simulation.sensors import Sensors
from trees import random_mjcf

PENDULUM = """<mujoco><option gravity="0 0 -9.81"/><worldbody><body name="arm">
<joint name="j" axis="0 1 0" armature="{armature}"/>
<inertial pos="0 0 -{length}" mass="{mass}" diaginertia="{inertia} {inertia} {inertia}"/>
</body></worldbody></mujoco>"""


def swing(robot, size=0.3, period=10.0, seed=0):
    rng = np.random.default_rng(seed)
    a = size * rng.normal(size=(robot.n, 4))
    return Fourier(period, robot.home, a - a.mean(axis=1, keepdims=True), 0 * a, robot.dof_names)


def stand(robot, seconds, where=None):
    return PointToPoint(*(robot.home if where is None else where,) * 2, seconds, robot.dof_names)


FREE = Controller(0.0, 0.0)


def pendulum(mass=1.0, length=1.0, inertia=1e-6, armature=0.0):
    text = PENDULUM.format(mass=mass, length=length, inertia=inertia, armature=armature)
    return sy.load_robot(mujoco.MjSpec.from_string(text))


def test_the_loop_is_mujocos_with_the_same_pid_for_ten_seconds():
    robot = sy.load_robot("panda")
    controller = pid_for(robot)
    ours = simulate(robot, swing(robot), controller=controller, sensors=Sensors(velocity="measured"), cartesian=False)

    spec = robot.source.spec.copy()
    for joint in [joint for joint in spec.joints if joint.name.startswith("finger")]:
        spec.delete(joint)
    for key in list(spec.keys):
        spec.delete(key)
    model = spec.compile()
    model.opt.integrator, model.opt.timestep = mujoco.mjtIntegrator.mjINT_RK4, 1e-3
    off = mujoco.mjtDisableBit
    model.opt.disableflags = int(off.mjDSBL_CONSTRAINT | off.mjDSBL_CONTACT)
    data = mujoco.MjData(model)
    gains, limit = controller.gains(7), controller.limits(robot)
    wanted, rates = ours.more["q_d"], ours.more["qd_d"]
    data.qpos[:] = wanted[0]
    integral, q = np.zeros(7), np.empty_like(wanted)
    for k in range(len(ours)):
        q[k] = data.qpos
        error = wanted[k] - data.qpos
        asked = gains[0] * error + gains[1] * (integral + error * 1e-3) + gains[2] * (rates[k] - data.qvel)
        tau = np.clip(asked, -limit, limit)
        waits = (tau != asked) & ((asked - tau) * error >= 0)
        integral += np.where(waits, 0.0, error * 1e-3)
        data.qfrc_applied[:] = tau
        mujoco.mj_step(model, data)
    assert np.abs(q - ours.more["q_true"]).max() < 1e-6
    assert len(ours) == 10_001


def test_accelerations_of_the_loop_are_mj_forward_on_random_trees(rng):
    kinds = ("hinge", "slide", "none", "two hinges")
    for _ in range(20):
        robot = sy.load_robot(mujoco.MjSpec.from_string(random_mjcf(rng, 6, kinds, free=False)))
        n, frames = robot.n, joint_frames(robot)
        tree = (frames.parents, frames.rotary, frames.frames, frames.inertias(robot.body_parameters), robot.gravity)
        law, rotors = (*NoFriction().packed(n), np.full(n, np.nan)), np.ascontiguousarray(robot.joint_parameters[:, 0])
        q, qd, _ = random_states(robot, rng, 5)
        tau = rng.normal(size=(5, n))
        model = robot.source.spec.copy().compile()
        model.dof_damping[:] = 0
        model.opt.disableflags = int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT | mujoco.mjtDisableBit.mjDSBL_CONTACT)
        data = mujoco.MjData(model)
        for sample in range(5):
            state, out, work = np.zeros((6, n)), np.zeros((6, n)), workspace(n)
            state[0], state[1] = q[sample], qd[sample]
            assert slope(tree, rotors, law, np.zeros((0, 9)), state, tau[sample], 20.0, work, np.zeros(n), out) < 0
            data.qpos[:], data.qvel[:], data.qfrc_applied[:] = q[sample], qd[sample], tau[sample]
            mujoco.mj_forward(model, data)
            # Relative to the size of the accelerations: a light last link is a badly conditioned mass matrix.
            np.testing.assert_allclose(out[1], data.qacc, rtol=1e-9, atol=1e-9 * np.abs(data.qacc).max())


def test_a_loop_prepared_once_runs_with_any_parameters_as_simulate_does():
    robot = sy.load_robot("two_link", friction=("coulomb", "offset"))
    path, controller = swing(robot, period=2.0), pid_for(robot)
    loop = ClosedLoop(robot, reference_of(path), controller, sample_hz=500.0)
    theta = robot.parameters * 1.1
    for prop, value in (("damping", 0.7), ("coulomb", 0.2), ("offset", -0.3)):
        theta[robot.layout.block(prop)] = value
    other = robot.with_parameters(theta)
    quiet = {"sample_hz": 500.0, "controller": controller, "cartesian": False}
    runs = loop.run_all([robot, theta, other, None])
    for done, twin in zip(runs, (robot, other, other, robot), strict=True):
        full = simulate(twin, path, **quiet)
        assert np.array_equal(done.q, full.more["q_true"])
        assert np.array_equal(done.qdd, full.more["qdd_true"])
        assert np.array_equal(done.tau, full.more["tau_commanded"])
    # Friction of theta acts: Newton's law with the sign of motion, and within it while a joint turns round.
    _, q, qd, qdd, tau = runs[1]
    bare = replace(other, joint_parameters=other.joint_parameters * np.array([1.0, 0, 0, 0]))
    dry = tau - sy.inverse_dynamics(bare, q, qd, qdd) - 0.7 * qd + 0.3
    moves = np.abs(qd) > 0.05
    assert moves.mean() > 0.75
    np.testing.assert_allclose(dry[moves], 0.2 * np.sign(qd[moves]), atol=1e-9)
    assert np.abs(dry).max() < 0.2 + 1e-9
    with pytest.raises(sy.SteelyardError, match="parameters"):
        loop.run(theta[:-1])


def test_feed_forward_is_the_nominal_models_whatever_the_parameters_of_the_run():
    robot = sy.load_robot("two_link")
    path = swing(robot, period=2.0)
    loop = ClosedLoop(robot, reference_of(path), Controller(0.0, 0.0, feed_forward=True))
    expected = sy.inverse_dynamics(robot, *loop.reference)
    np.testing.assert_allclose(loop.run(1.2 * robot.parameters).tau, expected, atol=1e-12)


def test_a_reference_is_rebuilt_from_the_samples_that_a_recording_has():
    robot = sy.load_robot("two_link")
    path = swing(robot, period=2.0)
    exact = reference_of(path, 1000.0)
    t = np.arange(0, 201) / 100.0
    samples = path.sample(t)
    # At 100 Hz a quintic is within (h/2)⁶/6!·q⁽⁶⁾, far below a microradian; positions alone are a spline of order 4.
    assert np.abs(reference_from_samples(t, *samples)[0] - exact[0]).max() < 1e-9
    assert np.abs(reference_from_samples(t, *samples)[2] - exact[2]).max() < 1e-3
    assert np.abs(reference_from_samples(t, samples[0])[0] - exact[0]).max() < 1e-5
    assert np.array_equal(reference_from_samples(path_times(exact), *exact), exact)
    with pytest.raises(sy.DataError, match="its time does not advance"):
        reference_from_samples(t[::-1], *samples)


def path_times(reference):
    return np.arange(reference.shape[1]) / 1000.0


def test_a_mass_matrix_that_is_not_positive_blames_the_joint_that_carries_it():
    robot = sy.load_robot("panda")
    theta = robot.parameters.copy()
    theta[robot.layout.index("link6.Izz")] -= 5.0
    theta[robot.layout.block("armature")] = 0.0
    loop = ClosedLoop(robot, reference_of(swing(robot, period=1.0)), pid_for(robot))
    with pytest.raises(SimulationError, match=r"mass matrix is not positive definite at 0.0000 s: what joint6 carries"):
        loop.run(theta)


@pytest.mark.parametrize(("integrator", "order"), [("rk1", 1), ("rk2", 2), ("rk4", 4), ("semi-implicit", 1)])
def test_integrators_converge_with_their_order(integrator, order):
    robot = sy.load_robot("two_link")
    start, path = [0.3, -0.7], stand(robot, 0.5, np.array([0.3, -0.7]))

    def final(step, method=integrator):
        done = simulate(
            robot, path, controller=FREE, friction=NoFriction(), control_hz=20.0, step=step, integrator=method,
            start=start, cartesian=False,
        )  # fmt: skip
        return np.concatenate([done.more["q_true"][-1], done.more["qd_true"][-1]])

    exact = final(1e-4, "rk4")
    # SciPy's adaptive method, which knows nothing of ours, comes to the same within its tolerance.
    assert np.abs(final(None, "rk45") - exact).max() < 1e-7
    errors = [np.linalg.norm(final(step) - exact) for step in (1.25e-3, 6.25e-4)]
    measured = np.log(errors[0] / errors[1]) / np.log(2)
    assert abs(measured - order) < 0.3


def test_energy_is_kept_to_the_order_of_the_integrator():
    robot = sy.load_robot("panda")
    drift = []
    for step in (1e-3, 5e-4):
        done = simulate(robot, stand(robot, 1.0), controller=FREE, friction=NoFriction(), step=step, cartesian=False)
        total = np.sum(energy(robot, done.more["q_true"], done.more["qd_true"]), axis=0)
        drift.append(
            np.abs(total - total[0]).max() / np.abs(energy(robot, done.more["q_true"], done.more["qd_true"])[0]).max()
        )
    assert drift[0] < 1e-7
    assert drift[1] < drift[0] / 8


def test_the_implicit_integrator_agrees_with_small_explicit_steps():
    robot = sy.load_robot("two_link")
    law = friction_named("stribeck", [10.0, 5.0])
    path = swing(robot, period=1.0)
    explicit = simulate(robot, path, friction=law, step=2e-5, control_hz=200.0, cartesian=False)
    implicit = simulate(robot, path, friction=law, integrator="radau", control_hz=200.0, cartesian=False)
    assert np.abs(explicit.more["q_true"] - implicit.more["q_true"]).max() < 1e-5


def test_flexible_joint_of_exercise_7_5_swings_at_its_modes():
    """J_l = 1, J_m = 0.1, k = 100, mgl = 10: 3.01 and 33.2 rad/s; the book's 3.16 leaves the rotor's inertia out."""
    robot = pendulum(mass=(10 / 9.81) ** 2, length=9.81 / 10, inertia=1e-9)
    J = sy.mass_matrix(robot, [0.0])[0, 0]
    assert abs(J - 1) < 1e-8
    springs = FlexibleJoint(0.1, 100.0)
    slow, fast = modes([[J]], 0.1, 100.0, gravity_stiffness=10.0)
    done = simulate(
        robot, stand(robot, 20.0, np.zeros(1)), controller=FREE, friction=NoFriction(), flexible=springs,
        start=[0.01], cartesian=False,
    )  # fmt: skip
    spectrum = np.abs(np.fft.rfft(done.more["q_true"][:, 0] * np.hanning(len(done)), 2**18))
    w = 2 * np.pi * np.fft.rfftfreq(2**18, 1e-3)
    assert abs(w[spectrum.argmax()] - slow) < 0.01 * slow
    twist = (done.more["theta"] - done.more["q_true"])[:, 0]
    spectrum = np.abs(np.fft.rfft((twist - twist.mean()) * np.hanning(len(done)), 2**18))
    high = w > 15
    assert abs(w[high][spectrum[high].argmax()] - fast) < 0.01 * fast


def test_hysteresis_in_the_closed_loop_keeps_its_width_and_heats():
    """Driven slowly, the joint's torque over its twist is a loop of height 2 max|z| that is gone through one way."""
    robot = pendulum(mass=1.0, length=10 / 9.81)
    half = 2.0
    memory = replace(harmonic_drive(500.0, 2 * half, 1.0), stiffness=0.0)
    springs = FlexibleJoint(0.1, 500.0, 0.5, hysteresis=memory)
    path = Fourier(8.0, [0.0], [[0.8, -0.8]], [[0.0, 0.0]], periods=2)
    quiet = {"friction": NoFriction(), "flexible": springs, "sensors": Sensors(velocity="measured"), "cartesian": False}
    done = simulate(robot, path, step=2e-4, **quiet)
    late = done.t > 8.0
    q, theta, qdd = (done.more[name][late, 0] for name in ("q_true", "theta", "qdd_true"))
    twist = theta - q
    # What the link gets is what moves it: the spring, its damper, and z.
    torque = 10 * np.sin(q) + sy.mass_matrix(robot, [0.0])[0, 0] * qdd
    z = torque - 500.0 * twist - 0.5 * (done.more["theta_rate"] - done.more["qd_true"])[late, 0]
    assert np.abs(z).max() < half * (1 + 1e-6)
    assert np.abs(z).max() > 0.9 * half
    assert np.trapezoid(z, twist) > 0.0
    short = Fourier(0.5, [0.0], [[0.8, -0.8]], [[0.0, 0.0]])
    judge = simulate(robot, short, integrator="rk45", **quiet)
    mine = simulate(robot, short, step=1e-4, **quiet)
    # The hysteresis has corners, at which RK4 is of order one in the step of 0.1 ms.
    assert np.abs(judge.more["theta"] - mine.more["theta"]).max() < 1e-5


def test_backlash_in_the_closed_loop_lets_the_link_lag_by_the_gap():
    robot, gap = pendulum(mass=1.0, length=10 / 9.81), 0.02
    path = Fourier(8.0, [0.0], [[0.8, -0.8]], [[0.0, 0.0]])
    quiet = {"friction": NoFriction(), "sensors": Sensors(velocity="measured"), "cartesian": False, "step": 1e-4}
    worn = simulate(robot, path, flexible=FlexibleJoint(0.1, 5000.0, 20.0, gap), **quiet)
    twist = (worn.more["theta"] - worn.more["q_true"])[:, 0]
    rate = (worn.more["theta_rate"] - worn.more["qd_true"])[:, 0]
    J = sy.mass_matrix(robot, [0.0])[0, 0]
    torque = 10 * np.sin(worn.more["q_true"][:, 0]) + J * worn.more["qdd_true"][:, 0]
    # Teeth that push: half the gap, the spring's share and the damper's.
    pushing = np.abs(torque) > 1e-6
    np.testing.assert_allclose(
        twist[pushing], (np.sign(torque) * gap / 2 + (torque - 20 * rate) / 5000)[pushing], atol=1e-9
    )
    assert 0 < (np.abs(twist) < 0.5 * gap).mean() < 0.5
    assert np.abs(torque[np.abs(twist) < 0.5 * gap]).max() < 1e-9
    with pytest.raises(sy.SteelyardError, match="hysteresis and a gap are given"):
        FlexibleJoint(0.1, 5000.0, 0.0, gap, harmonic_drive(1.0, 1.0))


def test_friction_in_the_loop_depends_on_temperature_and_load():
    robot = sy.load_robot("two_link")
    law = LoadDependent(Temperature(CoulombViscous(1.0, 0.5), -0.01), 0.05)
    done = simulate(robot, swing(robot), friction=law, temperature=lambda t: 20 + 2 * t, step=1e-4, cartesian=False)
    expected = law.torque(done.more["qd_true"], load=done.more["tau_commanded"], temperature=20 + 2 * done.t[:, None])
    moves = np.abs(done.more["qd_true"]) > 0.05
    np.testing.assert_allclose(done.more["tau_friction"][moves], expected[moves], atol=1e-9)
    assert moves.mean() > 0.75


def test_a_payload_hangs_on_its_body_as_a_welded_body_would(rng):
    robot = sy.load_robot("panda")
    moments = [0.01, 0.02, 0.025]
    loaded = with_payload(robot, "hand", 2.0, (0.01, -0.02, 0.1), np.diag(moments))
    spec = robot.source.spec.copy()
    torques = []
    q, qd, qdd = random_states(robot, rng, 1)
    for carries in (False, True):
        if carries:
            load = spec.body("hand").add_body(name="load", pos=[0.01, -0.02, 0.1], mass=2.0, inertia=moments)
            load.ipos, load.explicitinertial = [0.0, 0.0, 0.0], True
        model = spec.compile()
        model.opt.disableflags = int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT | mujoco.mjtDisableBit.mjDSBL_CONTACT)
        data = mujoco.MjData(model)
        data.qpos[:7], data.qvel[:7], data.qacc[:7] = q[0], qd[0], qdd[0]
        mujoco.mj_inverse(model, data)
        torques.append(data.qfrc_inverse[:7].copy())
    added = sy.inverse_dynamics(loaded, q, qd, qdd) - sy.inverse_dynamics(robot, q, qd, qdd)
    np.testing.assert_allclose(added[0], torques[1] - torques[0], atol=1e-9)
    for wrong, sentence in (
        (("hand", 0.0), "must be above zero"),
        (("claw", 1.0), "no identified body 'claw'"),
        (("hand", 1.0, (0, 0, 0), np.diag([1.0, 0.1, 0.1])), "no body has the payload's inertia"),
    ):
        with pytest.raises(sy.SteelyardError, match=sentence):
            with_payload(robot, *wrong)


def test_threads_share_a_prepared_loop():
    robot = sy.load_robot("two_link")
    loop = ClosedLoop(robot, reference_of(swing(robot, period=2.0)), pid_for(robot))
    sensors = Sensors(position_noise=1e-4, torque_noise=0.1)

    def one(seed):
        return record(loop, sensors, np.random.default_rng(seed), cartesian=False)

    alone = [one(seed) for seed in range(6)]
    with ThreadPoolExecutor(3) as pool:
        together = list(pool.map(one, range(6)))
    for a, b in zip(alone, together, strict=True):
        assert np.array_equal(a.tau, b.tau)
        assert np.array_equal(a.q, b.q)


def test_stiff_springs_move_like_a_rigid_joint():
    robot = pendulum(armature=0.1)
    path = Fourier(4.0, [0.0], [[0.5, -0.5]], [[0.0, 0.0]])
    quiet = Sensors(velocity="measured")
    rigid = simulate(robot, path, friction=NoFriction(), sensors=quiet, cartesian=False, control_hz=1000)
    springs = FlexibleJoint(0.1, 2e5, 20.0)
    elastic = simulate(robot, path, friction=NoFriction(), flexible=springs, sensors=quiet, step=1e-4, cartesian=False)
    assert np.abs(rigid.more["q_true"] - elastic.more["q_true"]).max() < 1e-3


def test_dry_friction_holds_a_joint_and_does_not_chatter():
    robot = pendulum(armature=0.05)
    law = Coulomb(8.0)
    done = simulate(
        robot, stand(robot, 2.0, np.array([0.5])), controller=FREE, friction=law, step=1e-5, cartesian=False
    )
    # The weight asks for 4.7 N·m, less than the level: the joint creeps at a fraction of SIGN_WIDTH and no more.
    assert np.abs(done.more["qd_true"][100:]).max() < 1e-3
    force = done.more["tau_friction"][100:, 0]
    assert np.abs(force).max() < 8.0
    assert np.abs(np.diff(force)).max() < 0.05


def test_lugre_slides_before_it_breaks_away_and_dips_as_it_gets_going():
    robot = pendulum(mass=1e-3, length=0.01, inertia=0.1)
    law = LuGre(1.0, 1.5, 0.05, 1e4, 30.0, 0.1)
    path = Fourier(40.0, [0.0], [[0.2, -0.2]], [[0.0, 0.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        done = simulate(robot, path, controller=Controller(1.0, 2.0), friction=law, step=1e-4, cartesian=False)
    friction, speed = np.abs(done.more["tau_friction"][:, 0]), np.abs(done.more["qd_true"][:, 0])
    moved = np.abs(done.more["q_true"][:, 0] - done.more["q_true"][0, 0])
    breaks = int((speed > 0.02).argmax())
    # Slowly loaded, ż = q̇ (1 − σ0 z/Fs): at F the joint has moved −Fs/σ0 ln(1 − F/Fs); it slips near the static level.
    half = int((friction > 0.75).argmax())
    assert moved[half] == pytest.approx(1.5e-4 * np.log(1 / (1 - friction[half] / 1.5)), rel=0.02)
    assert 1.4 < friction[:breaks].max() < 1.6
    # In motion at constant speed it is Stribeck's law: below the level of break-away, and dropping with speed.
    going = (speed > 0.12) & (np.abs(done.more["qdd_true"][:, 0]) < 0.05)
    assert going.any()
    np.testing.assert_allclose(friction[going], law.steady_state().torque(speed[going]), rtol=0.02)
    assert friction[going].min() < 0.75 * friction[:breaks].max()
    assert friction.max() < 1.6


@pytest.mark.filterwarnings("ignore::steelyard.simulation.cautions.StepWarning")
def test_bristles_that_a_large_step_bursts_stop_the_simulation():
    robot = pendulum(mass=1e-3, length=0.01, inertia=0.1)
    law = LuGre(1.0, 1.5, 0.05, 1e5, 30.0, 0.1)
    path = Fourier(4.0, [0.0], [[2.0, -2.0]], [[0.0, 0.0]])
    with pytest.raises(SimulationError, match=r"ran away at .* in j; take a smaller step"):
        simulate(robot, path, controller=Controller(100.0, 10.0), friction=law, step=1e-3, cartesian=False)


def test_noise_has_the_size_asked_for_and_the_seed_repeats_it():
    robot = sy.load_robot("two_link")
    sensors = Sensors(position_noise=1e-4, torque_noise=[0.5, 0.1], torque_bias=0.2, torque_drift=0.01)
    runs = [
        simulate(robot, swing(robot), sensors=sensors, rng=np.random.default_rng(seed), cartesian=False)
        for seed in (1, 1, 2)
    ]
    assert np.array_equal(runs[0].tau, runs[1].tau)
    assert not np.array_equal(runs[0].tau, runs[2].tau)
    one = runs[0]
    error = one.tau - one.more["tau_commanded"] - 0.2 - 0.01 * one.t[:, None]
    assert np.allclose(error.std(axis=0), [0.5, 0.1], rtol=0.05)
    assert np.allclose((one.q - one.more["q_true"]).std(axis=0), 1e-4, rtol=0.05)


def test_encoders_step_samples_drop_out_and_torque_spikes():
    robot = sy.load_robot("two_link")
    sensors = Sensors(position_step=1e-3, dropouts=0.2, torque_noise=0.01, outliers=0.05, outlier_size=5.0)
    done = simulate(robot, swing(robot), sensors=sensors, cartesian=False)
    assert np.allclose(done.q, np.round(done.q / 1e-3) * 1e-3, atol=1e-12)
    spikes = np.abs(done.tau - done.more["tau_commanded"]) > 2.0
    assert abs(spikes.mean() - 0.05) < 0.01


def test_positions_drift_and_spike_and_torque_samples_drop_out():
    robot = sy.load_robot("two_link")
    soft = pid_for(robot, 1.0)
    sensors = Sensors(
        position_bias=0.01, position_drift=1e-3, position_outliers=0.05, position_outlier_size=0.02,
        torque_dropouts=0.2, velocity="measured",
    )  # fmt: skip
    done = simulate(robot, swing(robot), controller=soft, sensors=sensors, cartesian=False)
    error = done.q - done.more["q_true"] - 0.01 - 1e-3 * done.t[:, None]
    assert abs((np.abs(error) > 0.01).mean() - 0.05) < 0.01
    assert np.allclose(np.abs(error)[np.abs(error) > 0.01], 0.02)
    assert abs((np.diff(done.tau, axis=0) == 0).mean() - 0.2) < 0.03


def test_flexible_joints_are_seen_from_the_motor_from_the_first_tick_on():
    robot = sy.load_robot("two_link")
    springs = FlexibleJoint(0.05, 2e3, 1.0)
    sensors = Sensors(delay_ticks=3, velocity="measured")
    soft = pid_for(robot, 1.0)
    done = simulate(
        robot, stand(robot, 0.2), controller=soft, flexible=springs, sensors=sensors, step=2e-4, cartesian=False
    )
    assert np.allclose(done.q[:3], done.more["theta"][0])
    assert np.allclose(done.q[10:], done.more["theta"][7:-3])


def test_delay_shows_the_past():
    robot = sy.load_robot("two_link")
    sensors = Sensors(delay_ticks=5, velocity="measured")
    done = simulate(robot, swing(robot), controller=pid_for(robot, 1.0), sensors=sensors, cartesian=False)
    assert np.allclose(done.q[100:], done.more["q_true"][95:-5])


@pytest.mark.parametrize("model", ["gravity", "computed torque"])
def test_a_controller_that_knows_the_model_follows_better(model):
    robot = sy.load_robot("ur5e")
    plain = simulate(robot, swing(robot), controller=pid_for(robot, integral=0.0), cartesian=False)
    wise = pid_for(robot, integral=0.0, model="gravity") if model == "gravity" else computed_torque()
    better = simulate(robot, swing(robot), controller=wise, cartesian=False)

    def error(done):
        return np.abs(done.more["q_true"] - done.more["q_d"]).max()

    assert error(better) < 0.5 * error(plain)


@pytest.mark.filterwarnings("ignore::steelyard.simulation.cautions.SaturationWarning")
def test_torque_saturates_without_windup():
    robot = sy.load_robot("two_link")
    limit = 1.05 * np.abs(sy.gravity(robot, robot.home)).max() + 0.5
    done = simulate(robot, swing(robot, 2.0), controller=pid_for(robot, 8.0, limit=limit), cartesian=False)
    commanded = np.abs(done.more["tau_commanded"])
    assert commanded.max() <= limit
    assert (commanded == limit).any()


def test_a_simulation_that_runs_away_says_when_which_joint_and_what_to_change():
    robot = sy.load_robot("two_link")
    wild = Controller(1e6, 1e5, limit=1e9)
    with pytest.raises(SimulationError, match=r"ran away at \d.* s in joint\d; take a smaller step"):
        simulate(robot, swing(robot), controller=wild, control_hz=100.0)


def test_a_saturated_loop_is_warned_of_and_told_apart_by_its_cause():
    robot = sy.load_robot("two_link")
    weak = replace(pid_for(robot), limit=2.0)
    with pytest.warns(SaturationWarning, match=r"joint\d had the torque at its limit of 2 for \d+ % .* too weak"):
        simulate(robot, swing(robot), controller=weak, cartesian=False)
    delayed = Sensors(delay_ticks=30, velocity="measured")
    with pytest.warns(SaturationWarning, match=r"loop is unstable: take softer gains"):
        simulate(robot, swing(robot), controller=pid_for(robot, 15.0), sensors=delayed, cartesian=False)


def test_the_default_controller_is_tuned_for_the_poses_of_the_way():
    # A LBR iiwa has no rotors in its model: stretched upwards, several joints turn next to nothing.
    robot = sy.load_robot("iiwa14")
    upright = stand(robot, 1.0, np.zeros(robot.n))
    with warnings.catch_warnings():
        warnings.simplefilter("error", SaturationWarning)
        done = simulate(robot, upright, cartesian=False, friction=NoFriction(), start=np.full(robot.n, 0.01))
    assert np.abs(done.more["q_true"][-1]).max() < 0.01
    assert np.abs(np.diff(done.more["tau_commanded"][500:], axis=0)).max() < 0.1


def test_a_step_too_large_for_the_friction_is_warned_of():
    robot = sy.load_robot("two_link")
    law = LuGre(2.0, 3.0, 0.05, 1e5, 30.0)
    with (
        pytest.raises(SimulationError, match="take a smaller step"),
        pytest.warns(StepWarning, match=r"too large for the friction of joint\d"),
    ):
        simulate(robot, stand(robot, 0.1), friction=law, step=1e-3)
    with warnings.catch_warnings():
        warnings.simplefilter("error", StepWarning)
        simulate(robot, stand(robot, 0.1), friction=law)
        simulate(robot, stand(robot, 0.1), friction=Stribeck(2.0, 3.0, 0.05), step=1e-3)


def test_everything_that_the_protocol_lists_is_recorded(tmp_path):
    robot = sy.load_robot("two_link")
    done = simulate(robot, swing(robot), friction=friction_named("stribeck", 10.0), step=1e-4, seed_note=7)
    assert np.allclose(done.more["qdd_m"][1:-1], (done.qd[2:] - done.qd[:-2]) / (2 * done.t[1]))
    assert done.about["model_sha256"] != done.about["trajectory_sha256"]
    assert {"version", "nominal_robot", "temperature", "saturated_share"} <= set(done.about)
    names = {"q_d", "qd_d", "qdd_d", "q_true", "qd_true", "qdd_true", "tau_commanded", "tau_friction"}
    assert names | {"X", "X_d", "X_m", "Xd", "Xd_d", "Xd_m"} <= set(done.more)
    assert done.about["seed"] == 7
    assert done.about["friction"]["kind"] == "Stribeck"
    path = save_recording(done, tmp_path / "run.npz")
    back = read_npz(path)
    assert np.array_equal(back.tau, done.tau)
    assert back.joints == done.joints
    assert back.about["parameters"].keys() == set(robot.parameter_names)
    assert set(back.more) == set(done.more)
    # Newton's law holds in what was recorded.
    q, qd, qdd = (done.more[name] for name in ("q_true", "qd_true", "qdd_true"))
    bare = robot.with_layout(properties=("armature",))
    frictionless = sy.regressor(bare, q, qd, qdd) @ bare.parameters
    assert np.allclose(frictionless + done.more["tau_friction"], done.more["tau_commanded"], atol=1e-9)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"integrator": "euler"}, "no integrator 'euler'"),
        ({"control_hz": 0.0}, "control_hz is 0.0"),
        ({"control_hz": 1000.0, "sample_hz": 300.0}, "must be a multiple"),
        ({"step": -1.0}, "step is -1.0"),
        ({"start": [0.0]}, "start has shape"),
        ({"start": [np.nan, 0.0]}, "it must be finite"),
        ({"temperature": lambda t: np.full(3, 20.0)}, "temperature has shape"),
        ({"temperature": np.nan}, "the temperature has shape"),
        ({"controller": Controller([1.0, 2.0, 3.0], 0.0)}, "kp is"),
        ({"controller": Controller(1.0, 0.0, model="magic")}, "no controller model 'magic'"),
        ({"sensors": Sensors(position_noise=[1e-3] * 3)}, "position_noise has shape"),
    ],
)
def test_wrong_settings_give_one_sentence(options, sentence):
    robot = sy.load_robot("two_link")
    with pytest.raises(sy.SteelyardError, match=sentence):
        simulate(robot, stand(robot, 0.1), **options)


def test_simulate_on_the_command_line_writes_a_recording(tmp_path):
    robot = sy.load_robot("two_link")
    write_trajectory(tmp_path / "traj.csv", swing(robot, period=2.0), rate_hz=100.0)
    command = [sys.executable, "-m", "steelyard", "simulate", "two_link", "--trajectory", str(tmp_path / "traj.csv")]
    command += ["--friction", "coulomb-viscous", "--torque-noise", "0.1", "--output", str(tmp_path / "run.npz")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "largest tracking error" in done.stdout
    assert len(read_npz(tmp_path / "run.npz")) == 2001


def test_options_of_the_command_line_reach_the_simulation(tmp_path, monkeypatch, capsys):
    robot = sy.load_robot("ur5e")
    write_trajectory(tmp_path / "traj.csv", swing(robot, 0.1, period=1.0), rate_hz=100.0)

    def run(options, model="ur5e"):
        given = ["simulate", model, "--trajectory", str(tmp_path / "traj.csv"), "--output", str(tmp_path / "run.npz")]
        monkeypatch.setattr(sys, "argv", ["steelyard", *given, *options.split()])
        try:
            main()
        except SystemExit as stopped:
            if stopped.code:
                return capsys.readouterr().err
        return read_npz(tmp_path / "run.npz")

    body = robot.layout.bodies[-1]
    options = f"--payload {body}=1.5,0,0,0.1 --temperature 35 --temperature-coefficient -0.01 --load-coefficient 0.01"
    loaded = run(f"{options} --drift 1e-4 --dropouts 0.01 --step 5e-4")
    theirs = robot.parameters[robot.layout.index(f"{body}.m")]
    assert loaded.about["parameters"][f"{body}.m"] == pytest.approx(theirs + 1.5)
    assert loaded.about["nominal_sha256"] != loaded.about["model_sha256"]
    assert loaded.about["friction"]["kind"] == "Temperature"
    assert loaded.about["sensors"]["position_drift"] == [1e-4] * 6
    springs = "--stiffness 1e4,1e4,1e4,500,500,50 --joint-damping 5,5,5,0.1,0.1,0.01"
    soft = run(f"{springs} --hysteresis 2 --step 1e-4 --bandwidth 1")
    assert soft.about["flexible"]["hysteresis"]["kind"] == "BoucWen"
    worn = run(f"{springs} --backlash 1e-3 --step 1e-4 --bandwidth 1")
    assert worn.about["flexible"]["gap"] == [1e-3] * 6
    for extra, sentence in (
        ("--friction glue", "no friction law 'glue'"),
        ("--noise x", "--noise takes"),
        ("--payload 3", "--payload takes"),
        ("--payload claw=3", "no identified body 'claw'"),
        ("--hysteresis 1", "give their --stiffness too"),
        ("--stiffness 1e4 --hysteresis 1 --backlash 1e-3", "give one of them"),
        (
            "--stiffness 1e4 --joint-damping 5 --backlash 1e-3 --step 1e-3",
            "too large for the elasticity of wrist_3_joint",
        ),
        ("--temperature 30", "--temperature-coefficient"),
    ):
        assert sentence in run(extra)
    write_trajectory(tmp_path / "traj.csv", swing(sy.load_robot("two_link")), rate_hz=100.0)
    assert "the armature of" in run("--stiffness 1e4", model="two_link")


def test_an_implicit_integrator_says_that_a_motion_runs_away():
    """SciPy's would stop at the first number that is none."""
    robot = sy.load_robot("two_link")
    theta = robot.parameters.copy()
    theta[robot.layout.block("damping")] = -1e5
    wild = robot.with_parameters(theta)
    reference = np.zeros((3, 50, 2))
    loop = ClosedLoop(wild, reference, Controller(0.0, 0.0), start=np.ones((2, 2)), integrator="radau")
    with pytest.raises(SimulationError, match=r"ran away|not positive"):
        loop.run()
