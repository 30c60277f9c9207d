"""What friction laws promise: their shape, their columns, their energy, and the same numbers in compiled loops."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from steelyard.errors import DataError, OptionError
from steelyard.physics.conditions import LoadDependent, Temperature
from steelyard.physics.friction import (
    FRICTION_NAMES,
    Asymmetric,
    Coulomb,
    CoulombViscous,
    LuGre,
    NoFriction,
    Stribeck,
    Viscous,
    friction_named,
    stiction,
)
from steelyard.physics.kernels.friction import SIGN_WIDTH, friction_at_standstill, friction_torque
from steelyard.physics.kernels.friction import stiction as stiction_kernel

SCALE = np.array([87.0, 40.0, 12.0])
LUGRE = LuGre(1.0, 1.5, 0.05, bristle_stiffness=1e3, bristle_damping=0.3, damping=0.4)
LAWS = {name: friction_named(name, SCALE) for name in FRICTION_NAMES}
LAWS["sharp stribeck"] = Stribeck([1, 2, 3], [2, 2, 5], 0.05, 0.3, shape=[0.5, 1.0, 3.0])
LAWS["warm"] = Temperature(LAWS["stribeck"], [-0.01, 0.004, 0.02], 35.0)
LAWS["loaded"] = LoadDependent(LAWS["asymmetric"], 0.05)
LAWS["warm and loaded bristles"] = LoadDependent(Temperature(LUGRE, 0.01, 30.0), [0.1, 0.0, 0.02])
LAWS["offset, loaded and warm"] = Temperature(LoadDependent(LAWS["offset"], 0.02), -0.005, 25.0)
LINEAR = [name for name, law in LAWS.items() if not law.state]

each_law = pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
each_linear_law = pytest.mark.parametrize("law", [LAWS[name] for name in LINEAR], ids=LINEAR)


def signals(seed, shape=(200, 3), speed=2.0):
    rng = np.random.default_rng(seed)
    size = speed * 10.0 ** rng.uniform(-5, 0, shape)  # from within the smooth sign to full speed
    return size * rng.choice([-1, 1], shape), rng.normal(0, 2e-3, shape), rng.normal(0, 20, shape), rng.uniform(0, 60)


@each_law
def test_compiled_law_is_the_array_law(law):
    qd, z, load, temperature = signals(1)
    qd[0] = 0.0
    code, table = law.packed(3)
    assert table.shape == (3, 8)
    rows, ks = np.indices(qd.shape)
    compiled = np.array(
        [
            friction_torque(code, table[k], qd[t, k], z[t, k], load[t, k], temperature)
            for t, k in zip(rows.flat, ks.flat, strict=True)
        ]
    ).reshape(*qd.shape, 2)
    torque = law.torque(qd, z=z, load=load, temperature=temperature)
    zdot = law.zdot(qd, z, load=load)
    np.testing.assert_allclose(compiled[..., 0], torque, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(compiled[..., 1], zdot, rtol=1e-12, atol=1e-12 * np.abs(zdot).max() + 1e-300)
    level, centre = law.standstill(load=load[0], temperature=temperature)
    at_rest = [friction_at_standstill(code, table[k], load[0, k], temperature) for k in range(3)]
    expected = np.stack(np.broadcast_arrays(level, centre, SCALE)[:2], axis=1)
    np.testing.assert_allclose(at_rest, expected, rtol=1e-12)


@each_linear_law
def test_columns_times_parameters_is_the_torque_beyond_the_smooth_sign(law):
    qd, _, load, temperature = signals(2)
    qd += 20 * SIGN_WIDTH * np.sign(qd)  # tanh(20) is 1 in double precision
    parameters = law.parameters()
    columns = law.columns(qd, load=load, temperature=temperature)
    assert columns.keys() == parameters.keys()
    total = sum((columns[name] * parameters[name] for name in columns), np.zeros_like(qd))
    np.testing.assert_allclose(total, law.torque(qd, load=load, temperature=temperature), rtol=1e-12, atol=1e-14)


@each_linear_law
def test_columns_have_the_exact_sign(law):
    crawl = 1e-9
    for name, column in law.columns(np.array([[crawl], [0.0], [-crawl]]) * np.ones(3)).items():
        if name.startswith("coulomb") and not name.endswith("load"):
            assert set(np.abs(column[:, 0]) / np.abs(column[:, 0]).max()) <= {0.0, 1.0}
            assert column[1, 0] == 0.0


@each_law
def test_derivative_is_that_of_the_steady_torque(law):
    qd, _, load, temperature = signals(3)
    h = 1e-6 * np.maximum(np.abs(qd), 1e-4)
    context = {"load": load, "temperature": temperature}
    difference = (law.torque(qd + h, **context) - law.torque(qd - h, **context)) / (2 * h)
    slope = law.derivative(qd, **context)
    # Central differences of a torque of size F lose F·1e-16/h.
    np.testing.assert_allclose(slope, difference, rtol=1e-5, atol=1e-5 * np.abs(slope).max())
    level, _ = law.standstill(**context)
    steepest = law.derivative(np.zeros_like(qd), **context)
    assert np.all(np.abs(slope) <= steepest * (1 + 1e-12) + 1e-12)
    assert np.all(steepest * SIGN_WIDTH >= level * (1 - 1e-12))


@each_law
def test_torque_at_standstill_lies_in_its_interval(law):
    qd = np.linspace(-1e-4, 1e-4, 21)[:, None] * np.ones(3)
    level, centre = law.standstill(load=3.0, temperature=40.0)
    torque = law.torque(qd, load=3.0, temperature=40.0)
    # What is viscous adds at most 2e-4 N·m here; the smooth sign of an asymmetric law passes 0, not its centre.
    assert np.all(torque >= np.minimum(centre - level, 0) - 2e-4)
    assert np.all(torque <= np.maximum(centre + level, 0) + 2e-4)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), name=st.sampled_from([n for n in LINEAR if "offset" not in n]))
def test_friction_without_state_only_takes_energy(seed, name):
    qd, _, load, temperature = signals(seed, (50, 3), speed=20.0)
    assert np.all(LAWS[name].torque(qd, load=load, temperature=temperature) * qd >= 0)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_bristles_give_back_no_more_than_they_stored_up_to_their_passive_speed(seed):
    rng = np.random.default_rng(seed)
    sigma1 = 10 ** rng.uniform(-3, 1)
    law = LuGre(1.0, rng.uniform(1, 3), 0.05, 1e3, sigma1, rng.uniform(0, 1))
    qd = rng.uniform(-1, 1, 500) * np.minimum(law.passive_speed, 1e3)
    z = rng.normal(0, 1e-2, 500)
    F, zdot = law.torque(qd[:, None], z=z[:, None])[:, 0], law.zdot(qd[:, None], z[:, None])[:, 0]
    loss = F * qd - 1e3 * z * zdot
    assert np.all(loss >= -1e-12 * np.abs(F * qd).max())


def test_bristles_that_are_damped_too_much_give_energy_beyond_their_passive_speed():
    """The bound is sharp where g = Fc: the worst z makes heat negative just above it."""
    law = LuGre(1.0, 1.0, 0.05, 1e3, bristle_damping=5.0)
    speed = 1.1 * law.passive_speed
    z = np.linspace(-1, 1, 20001) * 1e-2
    loss = law.torque(speed, z=z[:, None]) * speed - 1e3 * z[:, None] * law.zdot(speed, z[:, None])
    assert loss.min() < 0
    assert np.isinf(LuGre(1.0, 1.0, 0.05, 1e3).passive_speed)


def test_the_energy_of_a_random_drive_through_bristles_never_exceeds_what_went_in():
    rng = np.random.default_rng(4)
    amplitude, frequency, phase = rng.uniform(0, 0.3, 6), rng.uniform(0.5, 20, 6), rng.uniform(0, 6, 6)

    def rates(t, x):
        qd = np.sum(amplitude * np.sin(frequency * t + phase))
        torque = LUGRE.torque(qd, z=x[:1])[0]
        return [LUGRE.zdot(qd, x[:1])[0], torque * qd]

    solution = solve_ivp(rates, (0, 2), [0.0, 0.0], method="LSODA", rtol=1e-7, atol=1e-9)
    stored = 0.5 * 1e3 * solution.y[0] ** 2
    assert np.all(np.diff(solution.y[1] - stored) >= -1e-6)


def test_bristles_are_a_spring_before_they_slip():
    """1-dof mass, a pull of 1 % of Fs: it swings about pull/σ0 and comes back to where it was."""

    def rates(t, x):
        _, qd, z = x
        pull = 0.015 if t < 1.0 else 0.0
        return [qd, pull - LUGRE.torque(qd, z=[z])[0], LUGRE.zdot(qd, [z])[0]]

    held = solve_ivp(rates, (0, 1), [0, 0, 0], method="LSODA", rtol=1e-8, atol=1e-12, max_step=0.01).y[0]
    # damped with (σ1 + σ2)/(2 J): the mean over the swings is the spring's; 1 % is z/z_max, which slips away
    assert np.mean(held[len(held) // 2 :]) == pytest.approx(0.015 / 1e3, rel=0.15)
    # the small-signal stiffness itself, to first order in the displacement
    dq = 1e-7
    path = solve_ivp(lambda t, z: LUGRE.zdot(dq, z), (0, 1), [0.0], rtol=1e-9, atol=1e-18)
    assert 1e3 * path.y[0, -1] / dq == pytest.approx(1e3, rel=1e-3)


def test_bristles_break_away_at_the_static_level_and_dip_to_the_coulomb_level():
    def steady(qd):
        z = solve_ivp(
            lambda t, z: LUGRE.zdot(qd, z), (0, 40 * 1.5e-3 / qd), [0.0], method="LSODA", rtol=1e-9, atol=1e-13
        )
        return LUGRE.torque(qd, z=z.y[:, -1:].T[0])[0]

    assert steady(1e-3) == pytest.approx(1.5, rel=2e-3)  # Fs up to (q̇/q̇s)² = 4e-4
    for qd in (1e-2, 5e-2, 0.3):
        assert steady(qd) == pytest.approx(1.0 + 0.5 * np.exp(-((qd / 0.05) ** 2)) + 0.4 * qd, rel=1e-6)
        assert steady(qd) == pytest.approx(LUGRE.torque(qd)[0], rel=1e-6)
    dip = LUGRE.torque(np.linspace(0.02, 1, 200)[:, None])[:, 0]
    assert 0 < dip.argmin() < 199


def test_a_mass_pulled_slowly_through_a_spring_holds_until_the_static_level():
    def rates(t, x):
        _, qd, z = x
        return [qd, 10.0 * t - LUGRE.torque(qd, z=[z])[0], LUGRE.zdot(qd, [z])[0]]

    solution = solve_ivp(rates, (0, 0.25), [0, 0, 0], method="LSODA", rtol=1e-7, atol=1e-10, dense_output=True)
    before, after = solution.sol(0.09)[1], solution.sol(0.25)[1]
    assert before < 0.025  # 0.9 N·m: bristles give way by 10/σ0 = 0.01 rad/s, swinging up to twice that
    assert after > 0.05  # 2.5 N·m


def test_stribeck_is_coulomb_viscous_where_both_levels_agree():
    qd, *_ = signals(5)
    np.testing.assert_allclose(Stribeck(2, 2, 0.1, 0.3).torque(qd), CoulombViscous(2, 0.3).torque(qd), rtol=1e-14)
    np.testing.assert_allclose(CoulombViscous(2, 0.3).torque(qd), Coulomb(2).torque(qd) + Viscous(0.3).torque(qd))
    np.testing.assert_allclose(Asymmetric(2, 2, 0.3, 0.3).torque(qd), CoulombViscous(2, 0.3).torque(qd), rtol=1e-14)
    assert not NoFriction().torque(qd).any()


def test_temperature_multiplies_all_friction_by_its_straight_line():
    law = Temperature(LAWS["stribeck"], 0.01, 30.0)
    qd, *_ = signals(6)
    np.testing.assert_allclose(law.torque(qd, temperature=30.0), LAWS["stribeck"].torque(qd), rtol=1e-14)
    np.testing.assert_allclose(law.torque(qd, temperature=50.0), 1.2 * LAWS["stribeck"].torque(qd), rtol=1e-14)
    assert not law.torque(qd, temperature=-100.0).any()  # never below nothing


def test_load_raises_coulomb_levels_and_leaves_viscous_friction():
    law = LoadDependent(Stribeck(1, 2, 0.1, 0.3), 0.05)
    expected = Stribeck(1.5, 3, 0.1, 0.3).torque([[0.04], [-0.5]])
    np.testing.assert_allclose(law.torque([[0.04], [-0.5]], load=-10.0), expected, rtol=1e-14)


def test_stiction_balances_what_it_can():
    np.testing.assert_array_equal(stiction([-3, -1, 0, 0.5, 3], 2.0), [-2, -1, 0, 0.5, 2])
    np.testing.assert_array_equal(stiction([-3, 3], 2.0, centre=0.5), [-1.5, 2.5])
    assert stiction_kernel(-3.0, 2.0, 0.5) == -1.5


def test_a_joint_held_by_stiction_stops_and_stays_without_chatter():
    J, h, pull, level = 0.01, 1e-3, 0.8, 1.0
    qd = np.empty(2000)
    qd[0] = 2.0
    for k in range(1999):
        qd[k + 1] = qd[k] + h / J * (pull - stiction(pull + J * qd[k] / h, level))
    stop = 2.0 * J / (level - pull)
    assert np.all(qd >= 0)
    assert np.argmax(qd == 0) == pytest.approx(stop / h, abs=2)
    assert not qd[np.argmax(qd == 0) :].any()


def test_a_smooth_sign_creeps_as_its_constant_says():
    creep = SIGN_WIDTH * np.arctanh(0.5)
    assert Coulomb(2.0).torque(creep)[0] == pytest.approx(1.0)
    assert np.degrees(creep) < 0.032


@pytest.mark.parametrize("name", ["stribeck", "lugre"])
def test_steps_of_rk4_are_stable_below_the_bound_of_the_fastest_rate(name):
    law, J, speed = friction_named(name, 40.0), 1.0, 2.0
    code, table = law.packed(1)

    def rates(x):
        torque, zdot = friction_torque(code, table[0], x[0], x[1], 0.0, 20.0)
        return np.array([-torque / J, zdot])

    h, x = 2.0 / law.fastest_rate(J, speed)[0], np.array([speed, 0.0])
    for _ in range(int(5.0 / h)):
        k1 = rates(x)
        k2 = rates(x + h / 2 * k1)
        k3 = rates(x + h / 2 * k2)
        x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + rates(x + h * k3))
    assert abs(x[0]) < 0.01  # at rest, but for the slowly damped swing of the bristles


def test_settings_that_cannot_be_used_are_refused_with_joint_and_number():
    refusals = {
        "static of joint 2 is 1, below its Coulomb level": lambda: Stribeck([1, 2], [2, 1], 0.1),
        "coulomb of joint 2 is -2": lambda: Coulomb([1, -2]),
        "stribeck_velocity is 0, not a finite number above 0": lambda: LuGre(1, 2, 0, 10),
        "shape of joint 1 is -1": lambda: Stribeck(1, 2, 0.1, 0, [-1, 2]),
        "offset is nan": lambda: CoulombViscous(1, 1, np.nan),
        "damping is not numeric": lambda: Viscous("much"),
        "coulomb 2, damping 3": lambda: CoulombViscous([1, 2], [1, 2, 3]),
        "set for 2 joints, the robot has 3": lambda: Coulomb([1, 2]).packed(3),
        "did you mean 'lugre'": lambda: friction_named("lugree"),
        "torque_scale of joint 2 is 0": lambda: friction_named("coulomb", [1, 0]),
        "twice": lambda: Temperature(LoadDependent(Temperature(Coulomb(1), 0.1), 0.1), 0.1),
        "not a friction law": lambda: Temperature("stribeck", 0.1),
        "has 3 joints, its law 2": lambda: LoadDependent(Coulomb([1, 2]), [0.1, 0.2, 0.3]),
        "no friction at 20 °C": lambda: Temperature(Coulomb(1), -0.1, 0.0),
        "steady_state": lambda: LUGRE.columns(0.1),
        "level of stiction is -1": lambda: stiction(0.5, -1.0),
    }
    for sentence, attempt in refusals.items():
        with pytest.raises(OptionError, match=sentence):
            attempt()
    with pytest.raises(DataError, match="velocities have 3 columns"):
        Coulomb([1, 2]).torque(np.zeros((5, 3)))


def test_settings_cannot_be_changed():
    with pytest.raises(AttributeError):
        LUGRE.coulomb = 3.0
    with pytest.raises(ValueError, match="read-only"):
        LUGRE.coulomb[0] = 3.0
