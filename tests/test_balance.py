"""The centre of mass of a wheel-legged robot: statics against MuJoCo, and estimates against what was put in."""

from dataclasses import replace

import mujoco
import numpy as np
import pytest

import steelyard as sy
from steelyard.balance.minimum_norm import MassFree, MinNorm, minimum_norm
from steelyard.balance.poses import Accuracy, Poses, pitch_and_roll
from steelyard.balance.posture import home_height, lean, posture, standing, whole_com
from steelyard.balance.stacked import Stacked, centre_of_mass, estimate, fold, init, step
from steelyard.balance.stance import stance_of
from steelyard.balance.statics import Coupling, coupling_matrix, equations, trunk_wrench
from steelyard.balance.suggest import PoseGrid, suggest_poses
from steelyard.errors import ModelError, OptionError
from steelyard.excitation.criteria import AOptimal

TRUTH = np.array([25.0, 1.5, 0.1, 1.7])  # [m, mx, my, mz]: not the model's
MASS, COM = TRUTH[0], TRUTH[1:] / TRUTH[0]


@pytest.fixture(scope="module")
def stance():
    return stance_of(sy.load_robot("wheel_legged"))


def stood(stance, pitches, heights=(1.0, 0.85), rolls=(0.0,), phi=TRUTH):
    """Perfect readings of these poses."""
    q, force = [], []
    for k, degrees in enumerate(pitches):
        pitch, roll = np.radians(degrees), rolls[k % len(rolls)]
        found = posture(stance, heights[k % len(heights)] * home_height(stance), pitch, roll, phi)
        assert found is not None
        q.append(found)
        force.append(9.81 * lean(stance, pitch, roll).T @ (0.0, 0.0, 1.0))
    return standing(stance, q, force, phi)


@pytest.fixture(scope="module")
def poses(stance):
    return stood(stance, (-30, -15, 0, 15, 30, 45))


def mujocos_equilibrium(pitch, roll, joints, axle_moment=True):
    """Joint torques by mj_inverse and the floor's forces at the tyres, in MuJoCo alone; the robot floats in the air."""
    model = mujoco.MjModel.from_xml_path(str(sy.robot.library.library_path("wheel_legged")))
    data = mujoco.MjData(model)
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONTACT)
    turn, part = np.zeros(4), np.zeros(4)
    mujoco.mju_axisAngle2Quat(turn, [0, 1, 0], pitch)
    mujoco.mju_axisAngle2Quat(part, [1, 0, 0], roll)
    mujoco.mju_mulQuat(data.qpos[3:7], turn, part)
    data.qpos[7:] = joints
    mujoco.mj_forward(model, data)
    data.qacc[:] = 0.0
    mujoco.mj_inverse(model, data)
    columns = []
    for name in ("left_wheel", "right_wheel"):
        body, axle = model.body(name).id, data.xaxis[model.joint(name).id]
        up = np.array([0.0, 0.0, 1.0]) - axle[2] * axle
        point = data.xpos[body] - 0.095 * up / np.linalg.norm(up)
        moved, turned = np.zeros((3, model.nv)), np.zeros((3, model.nv))
        mujoco.mj_jac(model, data, moved, turned, point, body)
        columns += [moved, axle[None] @ turned]
    held = np.vstack([*columns, np.eye(model.nv)[6:]]).T
    solution = np.linalg.lstsq(held, data.qfrc_inverse, rcond=None)[0]
    assert np.abs(held @ solution - data.qfrc_inverse).max() < 1e-9
    R = data.xmat[model.body("trunk").id].reshape(3, 3)
    return model, data, solution[8:], R.T @ (0.0, 0.0, 9.81)


POSTURES = [(-0.5, 0.0, (0.9, -1.2)), (0.0, 0.1, (0.6, -1.25)), (0.5, -0.1, (0.2, -1.5)), (1.0, 0.0, (0.0, -1.9))]


def test_what_holds_a_pose_is_mj_inverse(stance):
    for pitch, roll, (hip, knee) in POSTURES:
        joints = [hip, knee, 0.3, hip + 0.1, knee, -0.2]
        _, data, _, force = mujocos_equilibrium(pitch, roll, joints)
        ours = trunk_wrench(stance, joints, force, stance.nominal)[0]
        R = data.xmat[1].reshape(3, 3)
        theirs = np.concatenate([R.T @ data.qfrc_inverse[:3], data.qfrc_inverse[3:]])  # forces in the trunk's axes
        np.testing.assert_allclose(ours, theirs, atol=1e-9)  # rounding of forces of 265 N


@pytest.mark.parametrize("settings", [Stacked(), Stacked(mass=20.0), Stacked(coupling=Coupling(None))])
def test_stacked_poses_find_the_trunk_from_mujocos_statics(stance, settings):
    rows = [(q, *mujocos_equilibrium(pitch, roll, [*q, 0.3, *q, -0.2])[2:]) for pitch, roll, q in POSTURES]
    q = np.array([[*legs, 0.3, *legs, -0.2] for legs, _, _ in rows])
    tau, force = np.array([tau for _, tau, _ in rows]), np.array([force for _, _, force in rows])
    nothing = np.zeros_like(q)
    found = centre_of_mass(stance, Poses(q, tau, force, nothing, nothing, np.zeros_like(force), np.ones(4)), settings)
    assert not found.blind
    np.testing.assert_allclose(found.com, (0.02, 0.0, 0.085), atol=1e-9)  # exact data: rounding alone
    assert found.mass == pytest.approx(20.0, rel=1e-9)
    if found.coupling is not None:
        assert found.coupling == pytest.approx(0.0, abs=1e-9)
    assert found.misfit < 1e-6


def test_the_whole_robots_centre_of_mass_is_mujocos_subtree_com(stance):
    for pitch, roll, (hip, knee) in POSTURES:
        joints = [hip, knee, 0.0, hip, knee, 0.0]
        model, data, _, _ = mujocos_equilibrium(pitch, roll, joints)
        mass, com = whole_com(stance, joints)
        assert mass == pytest.approx(model.body_subtreemass[1], rel=1e-12)
        R, place = data.xmat[1].reshape(3, 3), data.xpos[1]
        np.testing.assert_allclose(place + R @ com, data.subtree_com[1], atol=1e-12)


def test_a_posture_puts_the_axles_below_the_centre_of_mass(stance):
    q = posture(stance, 0.9 * home_height(stance), 0.4, 0.08)
    model, data, torques, _ = mujocos_equilibrium(0.4, 0.08, q)
    axles = data.xaxis[[model.joint(f"{side}_wheel").id for side in ("left", "right")]]
    up = np.array([0.0, 0.0, 1.0]) - axles[:, 2:] * axles
    touching = data.xpos[[4, 7]] - 0.095 * up / np.linalg.norm(up, axis=1, keepdims=True)
    # The search stops below a micrometre in each of two directions.
    assert np.abs(touching[:, 0] - data.subtree_com[1][0]).max() < 2e-6
    assert np.ptp(touching[:, 2]) < 2e-6
    assert abs(torques[2] + torques[5]) < 1e-3  # N·m: balanced, so that the axles together need no moment
    assert posture(stance, 3.0, 0.0) is None


def test_steps_one_after_the_other_are_weighted_least_squares_of_all(stance, poses):
    settings = Stacked()
    made = equations(stance, poses, settings.accuracy)
    state = init(stance, settings)
    for pose in made:
        state = step(state, pose)
    roots = [np.linalg.cholesky(np.linalg.inv(pose.random + pose.shared @ pose.shared.T)).T for pose in made]
    A = np.vstack([root @ pose.A for root, pose in zip(roots, made, strict=True)])
    b = np.concatenate([root @ pose.b for root, pose in zip(roots, made, strict=True)])
    # Normal equations lose twice the digits of a condition of 20.
    np.testing.assert_allclose(estimate(state).parameters, np.linalg.lstsq(A, b, rcond=None)[0], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(estimate(fold(init(stance, settings), made[::-1])).com, COM, atol=1e-9)


def test_one_pose_alone_does_not_show_the_height_and_says_so(stance, poses):
    found = centre_of_mass(stance, poses.chosen([2]))
    assert found.deviation["z"] == np.inf
    assert found.deviation["x"] < 5e-3
    assert len(found.blind) == 1
    assert "trunk.mz" in found.blind[0]
    assert "do not show" in found.message
    assert centre_of_mass(stance, poses.chosen([0, 4])).blind == ()


def test_without_wheel_torques_the_two_moments_of_hip_and_knee_are_left_and_suffice(stance, poses):
    tau = poses.tau.copy()
    tau[:, [stance.column(leg.wheel) for leg in stance.legs]] = np.nan
    found = centre_of_mass(stance, replace(poses, tau=tau))
    np.testing.assert_allclose(found.com[[0, 2]], COM[[0, 2]], atol=1e-9)
    assert found.mass == pytest.approx(MASS, rel=1e-9)


def test_a_floor_that_slopes_does_no_harm(stance):
    """The tyre touches elsewhere, so that the axles carry a moment: the robot stands off its balance by 5 cm."""
    level = stood(stance, (-30, 0, 30, 45), phi=TRUTH + [0, 1.25, 0, 0])
    found = centre_of_mass(stance, standing(stance, level.q, level.force, TRUTH))
    np.testing.assert_allclose(found.com, COM, atol=1e-9)


def test_roll_and_both_legs_show_the_third_coordinate(stance):
    phi = TRUTH + [0, 0, 0.4, 0]
    found = centre_of_mass(stance, stood(stance, (-30, 0, 15, 40), rolls=(0.1, -0.1, 0.0), phi=phi))
    np.testing.assert_allclose(found.com, phi[1:] / phi[0], atol=1e-9)


def test_a_coupled_drive_is_found_from_the_poses(stance, poses):
    k = 1.0
    motors = poses.tau @ np.linalg.inv(np.eye(6) + k * coupling_matrix(stance)).T
    coupled = replace(poses, tau=motors)
    found = centre_of_mass(stance, coupled, Stacked(coupling=Coupling(None)))
    assert found.coupling == pytest.approx(k, rel=1e-9)
    np.testing.assert_allclose(found.com, COM, atol=1e-9)
    known = centre_of_mass(stance, coupled, Stacked(coupling=Coupling(k)))
    np.testing.assert_allclose(known.com, COM, atol=1e-9)
    blind_to_it = centre_of_mass(stance, coupled)
    assert blind_to_it.misfit > 1.5
    assert "coupled" in blind_to_it.message


def without_leg_weight():
    spec = mujoco.MjSpec.from_file(str(sy.robot.library.library_path("wheel_legged")))
    for body in spec.bodies:
        if body.name not in ("world", "trunk"):
            body.mass, body.fullinertia = 1e-9, [1e-12, 1e-12, 1e-12, 0, 0, 0]
    return stance_of(sy.load_robot(spec))


@pytest.mark.parametrize("method", [MinNorm(25.0), MinNorm(25.0, "knee"), MassFree()])
def test_least_norm_is_right_where_the_centre_of_mass_is_level_with_the_origin_and_wrong_by_its_height(method):
    light = without_leg_weight()  # the methods know nothing of the legs' weight
    flat = np.array([25.0, 2.0, 0.0, 0.5])  # level with the origin at a pitch of 14°
    right = np.degrees(np.arctan2(flat[3], flat[1]))
    poses = stood(light, (right, right - 40, right + 25), phi=flat)
    error = minimum_norm(light, poses, method) - flat[1:] / flat[0]
    pitch, _ = pitch_and_roll(light, poses.force)
    height = np.hypot(flat[1], flat[3]) / flat[0] * np.sin(np.radians(right) - pitch)
    assert np.linalg.norm(error[0]) < 1e-6  # legs of a milligram
    np.testing.assert_allclose(np.linalg.norm(error, axis=1), np.abs(height), atol=1e-6)
    assert np.linalg.norm(error[1]) > 0.03


def test_the_mass_free_solution_does_not_change_with_the_mass_where_the_others_do():
    light = without_leg_weight()
    heavy, q = TRUTH * 1.4, stood(light, (10, 30))
    more = standing(light, q.q, q.force, heavy)
    for method, same in ((MassFree(), True), (MinNorm(25.0), False), (MinNorm(25.0, "knee"), False)):
        change = np.abs(minimum_norm(light, more, method) - minimum_norm(light, q, method)).max()
        assert (change < 1e-6) == same


def test_intervals_hold_the_truth_as_often_as_they_say(stance, poses):
    """Errors drawn as `Accuracy` describes, and noise; 95 % of 150 is 142 ± 2.7, and 5 σ below is 129."""
    rng, accuracy, runs = np.random.default_rng(11), Accuracy(), 150
    noise = {"q": 3e-4, "tau": 0.05, "force": 3e-3}
    bias = {"q": accuracy.position_bias, "tau": accuracy.torque_bias, "force": accuracy.acceleration_bias}
    held = dict.fromkeys(("mass", "x", "z"), 0)
    errors = []
    for _ in range(runs):
        read = {}
        for name, scale in noise.items():
            true = getattr(poses, name)
            drawn = np.hypot(scale, accuracy.friction if name == "tau" else 0.0) * rng.normal(size=true.shape)
            read[name] = true + drawn + bias[name] * rng.normal(size=true.shape[1])
            read[f"variance_{name}"] = np.full(true.shape, scale**2)
        found = centre_of_mass(stance, replace(poses, **read))
        for name, truth in (("mass", MASS), ("x", COM[0]), ("z", COM[2])):
            low, high = found.interval(name)
            held[name] += low <= truth <= high
        errors.append([(found.mass - MASS) / found.deviation["mass"], (found.com[2] - COM[2]) / found.deviation["z"]])
    assert min(held.values()) >= 129, held
    assert np.all(np.std(errors, axis=0) > 0.75)  # nor are they wider than they need be


def test_legs_that_are_a_tenth_heavier_in_the_model_shift_the_answer_by_about_a_millimetre(stance, poses):
    spec = mujoco.MjSpec.from_file(str(sy.robot.library.library_path("wheel_legged")))
    for body in spec.bodies:
        if body.name not in ("world", "trunk"):
            body.mass, body.fullinertia = 1.1 * body.mass, 1.1 * np.array(body.fullinertia)
    found = centre_of_mass(stance_of(sy.load_robot(spec)), poses)
    assert 5e-4 < np.abs(found.com - COM).max() < 2e-3
    assert abs(found.mass - MASS) < 0.4


def test_suggested_poses_tell_more_than_as_many_at_random(stance, rng):
    grid = PoseGrid(heights=(0.85, 1.0), pitches=(-0.5, -0.2, 0.0, 0.2, 0.5), rolls=(0.0,))
    best = suggest_poses(stance, 3, grid=grid)
    assert best.candidates == 10
    assert not best.expected.blind
    everything = suggest_poses(stance, 10, grid=grid).poses
    made = equations(stance, everything, Accuracy())

    def figure(rows):
        state = fold(init(stance), [made[k] for k in rows])
        return AOptimal().value(np.linalg.eigvalsh(state.information))

    ours = fold(init(stance), equations(stance, best.poses, Accuracy()))
    value = AOptimal().value(np.linalg.eigvalsh(ours.information))
    others = [figure(rng.choice(10, 3, replace=False)) for _ in range(40)]
    assert value <= min(others) * (1 + 1e-6)
    assert np.ptp(best.pitch) > 0.5


def test_legs_are_found_by_structure_or_by_name():
    robot = sy.load_robot("wheel_legged")
    named = stance_of(robot, ["right_hip"], ["right_knee"], ["right_wheel"])
    assert [leg.hip for leg in named.legs] == ["right_hip"]
    assert [leg.wheel for leg in stance_of(robot).legs] == ["left_wheel", "right_wheel"]
    with pytest.raises(OptionError, match="left_hip"):
        stance_of(robot, ["hip"])
    with pytest.raises(OptionError, match="no complete leg"):
        stance_of(robot, ["left_hip"], ["right_knee"], ["left_wheel"])
    with pytest.raises(OptionError, match="site"):
        stance_of(robot, imu="nose")
    with pytest.raises(ModelError, match="free"):
        stance_of(sy.load_robot("two_link"))


FOREIGN = """<mujoco model="stork">
 <worldbody><body name="hull" pos="0 0 1"><freejoint/>
  <inertial mass="8" pos="0.01 -0.05 0.1" diaginertia="0.1 0.1 0.1"/>
  <site name="meter" euler="90 0 90"/>
  <body name="battery" pos="0 -0.1 0.05"><inertial mass="2" pos="0 0 0.02" diaginertia="0.01 0.01 0.01"/></body>
  {legs}
 </body></worldbody>
 <sensor><accelerometer site="meter"/></sensor>
</mujoco>"""
LEG = """<body name="t{k}" pos="{x} 0.1 0"><joint name="a{k}" axis="{s}1 0 0" range="-2 2"/>
  <inertial mass="0.7" pos="0 0 -0.1" diaginertia="0.01 0.01 0.01"/>
  <body name="s{k}" pos="0 0 -0.25"><joint name="b{k}" axis="{s}1 0 0" range="-2.5 2.5"/>
   <inertial mass="0.5" pos="0 0.01 -0.1" diaginertia="0.01 0.01 0.01"/>
   <body name="w{k}" pos="0 0 -0.22"><joint name="c{k}" axis="1 0 0"/>
    <inertial mass="0.6" pos="0 0 0" diaginertia="0.002 0.002 0.002"/>
    <geom type="cylinder" size="0.08 0.02" euler="0 90 0"/></body></body></body>"""


def test_another_robot_with_other_axes_names_and_mirrored_joints_is_found_as_well():
    """Three legs, hips along x, one with turned axes, a battery on the trunk, an IMU that lies on its side."""
    legs = "".join(LEG.format(k=k, x=x, s=s) for k, (x, s) in enumerate(((-0.2, ""), (0.2, "-"), (0.0, ""))))
    spec = mujoco.MjSpec.from_string(FOREIGN.format(legs=legs))
    stance = stance_of(sy.load_robot(spec))
    np.testing.assert_allclose(np.abs(stance.lateral), (1, 0, 0), atol=1e-12)
    assert stance.upper == ("hull", "battery")
    np.testing.assert_allclose(stance.nominal, [10.0, 0.08, -0.6, 0.94], atol=1e-12)
    assert not np.allclose(stance.imu, np.eye(3))
    q = [
        [s * (a + d) for s, d in ((1, 0.02), (-1, 0.0), (1, -0.02)) for a in (h, k, 0.0)]
        for h, k in ((0.3, -0.8), (-0.2, 0.5), (0.6, -1.1))
    ]
    force = np.array([[0.0, 4.0, 9.0], [0.5, -3.0, 9.3], [-0.3, 1.0, 9.7]])
    phi = np.array([12.0, 0.3, -0.4, 1.5])
    load = trunk_wrench(stance, q, force, phi)
    np.testing.assert_allclose(load[:, :3], (phi[0] + 3 * 1.8) * force, rtol=1e-12)  # Newton's second law
    found = centre_of_mass(stance, standing(stance, q, force, phi))
    np.testing.assert_allclose(found.com, phi[1:] / phi[0], atol=1e-9)
    assert found.mass == pytest.approx(12.0, rel=1e-9)
