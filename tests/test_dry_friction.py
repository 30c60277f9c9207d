"""Dry friction in the loop with the exact sign: bodies that slide, stop, stand, and are never thrown about."""

import warnings

import mujoco
import numpy as np
import pytest

import steelyard as sy
from steelyard.physics.friction import Asymmetric, CoulombViscous, Stribeck
from steelyard.simulation.cautions import StepWarning
from steelyard.simulation.controllers import Controller
from steelyard.simulation.loop import INTEGRATORS, ClosedLoop
from trees import random_mjcf

MASS, LEVEL = 1e-4, 2.0


def sledge(mass=MASS):
    """A body on a rail without weight."""
    text = f'''<mujoco><option gravity="0 0 0"/><worldbody><body name="b"><joint name="x" type="slide" axis="1 0 0"/>
      <inertial pos="0 0 0" mass="{mass}" diaginertia="1e-3 1e-3 1e-3"/></body></worldbody></mujoco>'''
    return sy.load_robot(mujoco.MjSpec.from_string(text))


def pushed(robot, force, friction, start=(0.0, 0.0), **settings):
    """The body under given forces, (ticks, n)."""
    still = np.zeros((3, *np.shape(force)))
    at = [np.full(robot.n, value) for value in start]
    loop = ClosedLoop(
        robot,
        still,
        Controller(0.0, 0.0),
        friction=friction,
        torque=np.asarray(force, dtype=float),
        start=at,
        **settings,
    )
    return loop.run()


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_a_light_body_stands_still_below_its_level_and_friction_is_what_holds_it(integrator):
    force = 0.99 * LEVEL * np.sin(np.linspace(0, 20, 500))[:, None]
    done = pushed(sledge(), force, CoulombViscous(LEVEL, 0.0), integrator=integrator)
    assert np.abs(done.q).max() < 1e-15
    assert np.abs(done.qd).max() == 0.0
    assert np.abs(done.qdd).max() < 1e-6


def test_a_sliding_body_stops_where_newton_says_and_stays():
    """x = v²m/2L, t = vm/L; the step in which it stops is at most half a step's way off."""
    speed, mass = 1.0, 1.0
    done = pushed(sledge(mass), np.zeros((800, 1)), CoulombViscous(LEVEL, 0.0), (0.0, speed))
    stops = speed * mass / LEVEL
    assert done.q[-1, 0] == pytest.approx(speed**2 * mass / (2 * LEVEL), abs=1e-6)
    sliding = done.t < stops - 1e-3
    np.testing.assert_allclose(done.q[sliding, 0], (speed * done.t - LEVEL / mass * done.t**2 / 2)[sliding], atol=1e-12)
    assert np.all(done.qd[done.t > stops + 1e-3] == 0.0)


def test_a_body_breaks_away_at_the_level_of_its_direction():
    force = np.concatenate([np.linspace(0, 3, 500), np.linspace(0, -3, 500)])[:, None]
    done = pushed(sledge(1.0), force, Asymmetric(1.0, 2.0, 0.5, 0.5))
    moving = np.abs(done.qd[:, 0]) > 1e-9
    assert force[:500][moving[:500]].min() == pytest.approx(1.0, abs=0.02)
    stuck = (np.arange(1000) >= 500) & ~moving
    assert force[stuck].min() == pytest.approx(-2.0, abs=0.02)


@pytest.mark.parametrize(
    "law", [CoulombViscous(5.0, 0.02), Stribeck(3.0, 5.0, 0.05, 0.02), Asymmetric(2.0, 6.0, 0.01, 0.02)]
)
def test_robots_without_rotors_only_ever_lose_energy_to_joints_that_rub(law):
    """Random trees whose last links weigh little, with joints that rub far more than that."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        drawn = random_mjcf(rng, 5, ("hinge", "slide", "two hinges"), free=False)
        robot = sy.load_robot(mujoco.MjSpec.from_string(drawn), armature=False)
        with warnings.catch_warnings():
            warnings.simplefilter("error", StepWarning)
            done = pushed(robot, np.zeros((400, robot.n)), law, (0.3, 0.5))
        energy = np.sum(sy.energy(robot, done.q, done.qd), axis=0)
        # To integrator order: a step of a millisecond.
        assert np.diff(energy).max() < 1e-4 * np.ptp(energy), (seed, np.diff(energy).max(), np.ptp(energy))
