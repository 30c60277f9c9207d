"""The loop in which controllers of `control/` run."""

import numpy as np
import pytest

import steelyard as sy
from steelyard.control.loop import Plant, run_controlled
from steelyard.physics.friction import CoulombViscous, LuGre
from steelyard.physics.transmission import FlexibleJoint
from steelyard.simulation.controllers import Controller
from steelyard.simulation.loop import ClosedLoop, SimulationError
from steelyard.simulation.sensors import Sensors


class Springs:
    """Kp e + Kd ė of the motors."""

    def __init__(self, kp, kd):
        self.kp, self.kd = kp, kd

    def start(self, n, dt):
        return self

    def step(self, seen, wanted):
        return self.kp * (wanted.q - seen.theta) + self.kd * (wanted.qd - seen.theta_rate)


class Nothing:
    """No torque at all."""

    def start(self, n, dt):
        return self

    def step(self, seen, wanted):
        return np.zeros_like(seen.q)

    def signals(self):
        return {"ones": np.ones(3)}


def circles(n, seconds=0.5, hz=1000.0):
    t = np.arange(round(seconds * hz) + 1) / hz
    phase = t[:, None] + np.arange(n)
    return np.stack([0.3 * np.sin(phase), 0.3 * np.cos(phase), -0.3 * np.sin(phase)])


@pytest.mark.parametrize("integrator", ["rk1", "rk2", "rk4", "semi-implicit"])
@pytest.mark.parametrize("kind", ["rigid", "lugre", "flexible"])
def test_a_pd_controller_moves_as_in_the_compiled_closed_loop(kind, integrator):
    robot, reference = sy.load_robot("two_link"), circles(2)
    flexible = FlexibleJoint(2000.0, 0.1, 1.0) if kind == "flexible" else None
    friction = LuGre(1.0, 1.5, 0.05, 2e3, 20.0, 0.5) if kind == "lugre" else CoulombViscous(0.5, 0.4)
    loop = ClosedLoop(
        robot, reference, Controller(80.0, 8.0, limit=40.0), 1000.0, None, 5e-5, integrator, friction, flexible
    )
    plant = Plant(robot, friction, flexible, step=5e-5, integrator=integrator, limit=40.0)
    there, here = loop.run(), run_controlled(plant, Springs(80.0, 8.0), reference)
    for name in ("t", "q", "qd", "qdd", "tau"):
        # The same steps in the same order; only the rounding of the controller differs, and stiff friction adds to it.
        np.testing.assert_allclose(getattr(here, name), getattr(there, name), rtol=1e-7, atol=1e-7, err_msg=name)


def test_sensors_err_as_in_the_compiled_closed_loop():
    robot, reference = sy.load_robot("two_link"), circles(2)
    loop = ClosedLoop(robot, reference, Controller(80.0, 8.0, limit=40.0), step=1e-4)
    sensors = Sensors(position_step=1e-4)
    out = np.empty((9, loop.samples, 2))
    loop.execute(out, None, sensors.in_the_loop(loop.ticks, 2, loop.dt, np.random.default_rng(0)))
    run = run_controlled(Plant(robot, step=1e-4, limit=40.0, sensors=sensors), Springs(80.0, 8.0), reference)
    np.testing.assert_allclose(run.q_seen, out[4], atol=1e-9)
    np.testing.assert_allclose(run.qd_seen, out[5], atol=1e-6)  # differences of the former over 1 ms
    noisy = Plant(robot, step=1e-4, sensors=Sensors(position_noise=1e-3))
    run = run_controlled(noisy, Springs(80.0, 2.0), reference, rng=np.random.default_rng(1))
    assert np.std(run.q_seen - run.q) == pytest.approx(1e-3, rel=0.1)  # of 1,002 samples: 2.2 % expected


@pytest.mark.parametrize("flexible", [None, FlexibleJoint(2000.0, 0.1, 1.0)])
def test_a_push_as_large_as_gravity_holds_the_links(flexible):
    """The push acts on the links, not on the motors: springs stay relaxed where it carries all the weight."""
    robot = sy.load_robot("two_link")
    still = np.zeros((3, 101, 2))
    still[0] = [0.4, -0.3]
    push = np.broadcast_to(sy.gravity(robot, still[0, 0]), (101, 2))
    run = run_controlled(Plant(robot, flexible=flexible, step=1e-4), Nothing(), still, push=push, start=still[0, 0])
    if flexible is None:
        np.testing.assert_allclose(run.q, still[0], atol=1e-12)
    # With springs the motors begin twisted under the weight, and spring back; the first instant says it.
    expected = np.zeros(2)
    if flexible is not None:
        expected = np.linalg.solve(
            sy.mass_matrix(robot, still[0, 0]) - np.diag(robot.joint_parameters[:, 0]), sy.gravity(robot, still[0, 0])
        )
    np.testing.assert_allclose(run.qdd[0], expected, atol=1e-9)
    assert run.signals["ones"].shape == (101, 3)


def test_without_a_step_the_loop_takes_what_friction_bears():
    robot, reference = sy.load_robot("two_link"), circles(2)
    law = LuGre(2.0, 3.0, 0.05, 1e4, 30.0, 0.5)
    coarse, fine = Plant(robot, law), Plant(robot, law, step=5e-6)
    assert 1 < coarse.substeps(reference) < 100
    a, b = (run_controlled(plant, Springs(80.0, 8.0), reference[:, :100]) for plant in (coarse, fine))
    np.testing.assert_allclose(a.q, b.q, atol=1e-7)


def test_dry_friction_with_its_exact_sign_comes_to_what_a_narrow_smooth_one_does_in_short_steps():
    robot, reference = sy.load_robot("two_link"), circles(2)
    exact, smooth = (Plant(robot, CoulombViscous(2.0, 0.5), step=step) for step in (2e-4, 2e-6))
    a, b = (run_controlled(plant, Springs(80.0, 8.0), reference[:, :400]) for plant in (exact, smooth))
    # The smooth sign lets joints creep by up to a milliradian a second before they move.
    np.testing.assert_allclose(a.q, b.q, atol=2e-4)


def test_what_cannot_be_run_is_refused():
    robot, reference = sy.load_robot("two_link"), circles(2)
    plant = Plant(robot)
    with pytest.raises(sy.OptionError, match="the reference has shape"):
        run_controlled(plant, Nothing(), reference[:, :, :1])
    with pytest.raises(sy.OptionError, match="the push has shape"):
        run_controlled(plant, Nothing(), reference, push=np.zeros(2))
    with pytest.raises(sy.OptionError, match="no integrator 'euler'"):
        Plant(robot, integrator="euler")
    with pytest.raises(sy.OptionError, match="torque limit"):
        Plant(robot, limit=-1.0)
    with pytest.raises(SimulationError, match="the controller asks for"):
        run_controlled(plant, Springs(np.nan, 0.0), reference)
    with pytest.raises(SimulationError, match="ran away"):
        run_controlled(Plant(robot, limit=1e12), Springs(-1e6, -1e4), reference)
