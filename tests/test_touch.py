"""External torque from the momentum observer: residuals, thresholds, contacts and forces."""

import dataclasses

import numpy as np
import pytest
import scipy.signal

import steelyard as sy
from steelyard.control.loop import Plant, run_controlled
from steelyard.control.momentum import MomentumObserver, Tool, force_at, init, residuals, step
from steelyard.control.motions import reference_motion
from steelyard.control.touch import (
    alarms,
    calibrate,
    find_contacts,
    memory_of,
    peaks_over,
    smallest_force,
    threshold_of,
)
from steelyard.control.touch_demonstration import Push, pushed_recording
from steelyard.control.tracking import ComputedTorque
from steelyard.identification.terms import CouplingTerm


def standing(robot, push, seconds=2.0):
    """A controlled robot that is pushed with constant joint torques while it stands."""
    ticks = round(seconds * 1000)
    still = np.zeros((3, ticks, robot.n))
    still[0] = robot.home
    pushed = np.tile(push, (ticks, 1))
    run = run_controlled(Plant(robot), ComputedTorque(robot), still, push=pushed)
    return sy.Recording(run.t, run.q, run.tau, joints=robot.dof_names)


@pytest.fixture(scope="module")
def panda():
    return sy.load_robot("panda")


@pytest.fixture(scope="module")
def pushed(panda):
    """Thirty seconds free, then three pushes at the hand."""
    reference = reference_motion(panda, "excite", 40.0)
    pushes = (Push((0, 0, -10), 31.0, 0.5), Push((5, 0, 0), 34.0, 0.5), Push((0, 3, 0), 37.0, 0.5))
    tool = Tool("hand")
    return pushed_recording(panda, reference, tool, pushes, rng=np.random.default_rng(0)), pushes, tool


@pytest.mark.parametrize("name", ["two_link", "panda", "scara"])
@pytest.mark.parametrize("order", [1, 2])
def test_the_residual_is_the_torque_that_pushes_in_steady_state(name, order):
    robot = sy.load_robot(name)
    push = np.linspace(-0.1, 0.15, robot.n) * robot.limits.torque
    seen = residuals(MomentumObserver(robot, order=order, torque="held"), standing(robot, push))
    # e^{−8·2π·2} of the observer is nothing; the control loop of 4 Hz has come to rest to 1e-6.
    np.testing.assert_allclose(seen.torque[-1], push, atol=1e-4)


def test_the_residual_follows_a_push_as_its_low_passes_say(panda):
    """While the robot moves: τ_ext through the observer's filters, whatever the motion."""
    reference = reference_motion(panda, "excite", 2.0)
    push = np.zeros((reference.shape[1], panda.n))
    push[1000:1600] = [5, -4, 3, 2, 1, -1, 0.5]
    run = run_controlled(Plant(panda), ComputedTorque(panda), reference, push=push)
    observer = MomentumObserver(panda, 10.0, 2, "held")
    recording = sy.Recording(run.t, run.q, run.tau, run.qd, joints=panda.dof_names)
    seen = residuals(observer, recording)
    share = -np.expm1(-2 * np.pi * 10.0 * 1e-3)
    expected = push
    for _ in range(2):
        expected = scipy.signal.lfilter([0, share] if expected is push else [share], [1, share - 1], expected, axis=0)
    # What is left is the curve of C q̇ and g between ticks.
    np.testing.assert_allclose(seen.torque, expected, atol=1e-3)


def test_a_stream_gives_what_the_recording_gives(panda, pushed):
    recording = pushed[0].between(0, 300)
    qd = np.gradient(recording.q, recording.t, axis=0)
    whole = dataclasses.replace(recording, qd=qd)
    for torque in ("held", "sampled"):
        observer = MomentumObserver(panda, torque=torque)
        state = init(observer, recording.t[0], recording.q[0], qd[0], recording.tau[0])
        stream = [state.residual]
        for k in range(1, len(recording)):
            state = step(observer, state, recording.t[k], recording.q[k], qd[k], recording.tau[k])
            stream.append(state.residual)
        np.testing.assert_allclose(np.array(stream), residuals(observer, whole).torque, atol=1e-9)
    with pytest.raises(sy.DataError, match="time does not advance"):
        step(observer, state, state.t, recording.q[0], qd[0], recording.tau[0])


def test_friction_of_the_model_is_no_push():
    robot = sy.load_robot("two_link", friction=("coulomb", "offset"))
    theta = robot.parameters.copy()
    for prop, value in (("damping", 0.4), ("coulomb", 0.5), ("offset", 0.2), ("armature", 0.1)):
        theta[robot.layout.block(prop)] = value
    robot = robot.with_parameters(theta)
    t = np.arange(3000) / 1000
    q = robot.home + 0.3 * np.sin(np.outer(t, [3.0, 4.0]))
    qd = 0.3 * np.array([3.0, 4.0]) * np.cos(np.outer(t, [3.0, 4.0]))
    qdd = -0.3 * np.array([9.0, 16.0]) * np.sin(np.outer(t, [3.0, 4.0]))
    recording = sy.Recording(t, q, sy.inverse_dynamics(robot, q, qd, qdd), qd)
    seen = residuals(MomentumObserver(robot), recording)
    # A tick in which dry friction turns is half off: 1 N·m through 8 Hz is 0.025, and then forgotten.
    assert np.abs(seen.torque).max() < 0.03
    assert np.median(np.abs(seen.torque)) < 1e-3
    wrong = robot.with_parameters(robot.parameters * np.where(np.char.find(robot.parameter_names, "coulomb") > 0, 0, 1))
    assert np.abs(residuals(MomentumObserver(wrong), recording).torque).max() > 0.4


def test_an_estimate_with_a_coupled_motor_has_its_momentum():
    robot = sy.load_robot("two_link")
    term = CouplingTerm("joint1", "joint2", 0.7)
    t = np.arange(2000) / 1000
    w = np.array([3.0, 5.0])
    q, qd, qdd = np.sin(np.outer(t, w)), w * np.cos(np.outer(t, w)), -(w**2) * np.sin(np.outer(t, w))
    extra = np.array([0.3, 0.4, 0.0])
    bare = sy.Recording(t, q, np.zeros_like(q), qd, qdd)
    tau = sy.inverse_dynamics(robot, q, qd, qdd) + term.columns(robot, bare) @ extra
    recording = sy.Recording(t, q, tau, qd, qdd)
    found = sy.identify(robot, recording, preprocessing=None, terms=(term,))
    assert np.abs(residuals(MomentumObserver(found), recording).torque).max() < 1e-3
    assert np.abs(residuals(MomentumObserver(found.robot), recording).torque).max() > 0.1


def test_pushes_are_found_in_time_with_their_force_and_nothing_else(panda, pushed):
    recording, pushes, tool = pushed
    observer = MomentumObserver(panda, torque="held")
    seen = residuals(observer, recording)
    free = seen.t < 20.0
    thresholds = calibrate(observer, seen.t[free], seen.torque[free], seen.qd[free])
    contacts = find_contacts(panda, seen.t, seen.q, seen.torque, thresholds, tool)
    assert len(contacts) == len(pushes)  # and no false one in the ten free seconds between
    for contact, push in zip(contacts, pushes, strict=True):
        # 10 N in 15 ms, 3 N in 40: the push itself grows for 10 ms.
        assert 0 < contact.begin - push.begin < 0.04
        assert 0 < contact.end - push.begin - push.seconds < 0.3
        assert np.linalg.norm(contact.force - push.force) < 0.1 * np.linalg.norm(push.force) + 0.3
        assert contact.direction @ push.force > 0.97 * np.linalg.norm(push.force)
        assert contact.unexplained < 0.1
        assert contact.beyond in ("link5", "link6", "link7")
    # The anchor of the textbook's KUKA: < 2 N at the tool, < 2 % of rated torque, with these sensors and a true model.
    assert np.median(smallest_force(panda, tool, seen.q, thresholds)) < 2.0
    assert (thresholds.deviation / panda.limits.torque).max() < 0.02


def coloured(rng, seconds, n, hz=100.0, corner=5.0):
    a = np.exp(-2 * np.pi * corner / hz)
    return scipy.signal.lfilter([1 - a], [1, -a], rng.standard_normal((round(seconds * hz), n)), axis=0)


@pytest.mark.parametrize("tail", ["normal", "heavy"])
def test_false_alarms_come_as_often_as_promised(tail):
    """Sixty an hour, from a minute of free motion; over forty such minutes, each tried on half an hour."""
    observer, rng = MomentumObserver(sy.load_robot("two_link")), np.random.default_rng(0)
    counted, hours = 0, 0.0
    for _ in range(40):
        x = coloured(rng, 60.0 + 1800.0, 2)
        if tail == "heavy":
            x = np.sinh(x / 0.4)  # 0.4: their deviation
        t = np.arange(len(x)) / 100.0
        made = calibrate(observer, t[:6000], x[:6000], np.zeros((6000, 2)), per_hour=60.0)
        share = np.abs((x[6000:] - made.mean) / made.threshold).max(axis=1)
        counted += alarms(share, max(1, round(100 * made.memory)))
        hours += 0.5
    rate = counted / hours
    # 1,200 are expected: a Gaussian's come so, and a tail of unknown shape is guessed from a minute of it.
    assert rate < (70.0 if tail == "normal" else 110.0)
    assert rate > 30.0  # nor so careful that it feels nothing


def test_memory_and_peaks_are_those_of_a_known_process():
    rng = np.random.default_rng(0)
    x = coloured(rng, 2000.0, 1)[:, 0]
    corner = 2 * np.pi * 5.0
    assert memory_of(x, 0.01) == pytest.approx(np.log(20) / corner, abs=0.02)
    assert memory_of(np.zeros(50), 0.1) == 0.1
    np.testing.assert_array_equal(peaks_over(np.array([0, 2, 3, 0, 0, 4, 0, 5.0]), 1.0, 2), [3, 5])
    np.testing.assert_array_equal(peaks_over(np.array([0, 2, 3, 0, 0, 0, 4, 0.0]), 1.0, 2), [3, 4])
    assert len(peaks_over(x, x.max(), 1)) == 0


def test_a_free_recording_that_is_too_short_says_how_long_it_should_be():
    slow = np.abs(np.sin(np.linspace(0, 6, 1000)))
    with pytest.raises(sy.DataError, match=r"independent peaks .* record about \d+ s without contact"):
        threshold_of(slow, 0.01, 2.0, 1 / 3600)
    observer = MomentumObserver(sy.load_robot("two_link"))
    with pytest.raises(sy.DataError, match="100 are needed"):
        calibrate(observer, np.arange(50) * 0.01, np.zeros((50, 2)), np.zeros((50, 2)))


def test_force_and_its_deviation_are_those_of_weighted_least_squares(panda):
    rng = np.random.default_rng(1)
    q, tool = panda.home[None], Tool("hand", (0.0, 0.0, 0.1))
    J = sy.jacobian(panda, panda.home, "hand", (0.0, 0.0, 0.1))[:3]
    deviation = rng.uniform(0.1, 1.0, panda.n)
    r = J.T @ [1.0, -2.0, 3.0]
    force, spread, rest = force_at(panda, tool, q, r[None], deviation)
    np.testing.assert_allclose(force[0], [1, -2, 3], rtol=1e-9)
    assert rest[0] < 1e-9
    covariance = np.linalg.inv(J @ np.diag(deviation**-2.0) @ J.T)
    np.testing.assert_allclose(spread[0], np.sqrt(np.diag(covariance)), rtol=1e-9)
    # A planar arm feels nothing across its plane.
    planar = sy.load_robot("two_link")
    _, spread, _ = force_at(planar, Tool("link2", (0.4, 0, 0)), planar.home[None], np.ones((1, 2)), np.ones(2))
    assert np.isinf(spread[0, 1])
    assert np.isfinite(spread[0, [0, 2]]).all()


def test_what_cannot_be_watched_is_refused(panda):
    with pytest.raises(sy.OptionError, match="bandwidth"):
        MomentumObserver(panda, 0.0)
    with pytest.raises(sy.OptionError, match="order is 4"):
        MomentumObserver(panda, order=4)
    with pytest.raises(sy.OptionError, match="torque is 'guessed'"):
        MomentumObserver(panda, torque="guessed")
    observer = MomentumObserver(panda)
    t = np.arange(5.0)
    with pytest.raises(sy.DataError, match="2 joints, panda has 7"):
        residuals(observer, sy.Recording(t, np.zeros((5, 2)), np.zeros((5, 2))))
    tau = np.zeros((5, 7))
    tau[3, 2] = np.nan
    with pytest.raises(sy.DataError, match=r"tau is not finite at 3\.0000 s"):
        residuals(observer, sy.Recording(t, np.zeros((5, 7)), tau))
