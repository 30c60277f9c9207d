"""Exercise 7.4: how many parameters of three links can be told apart, and which go together."""

import numpy as np

from ..dynamics import base_parameters, regressor
from ..robot.robot import Robot
from ..robot.states import random_states
from .answer import Answer, Line
from .arms import LENGTHS, planar, spatial


def inertial(robot: Robot) -> list[str]:
    """The names of ten parameters a body."""
    return [name for name in robot.parameter_names if name.split(".")[0] in robot.bodies]


def rank_by_svd(robot: Robot, rng: np.random.Generator) -> int:
    """The rank of the regressor at random states: the same number another way."""
    columns = robot.layout.indices(inertial(robot))
    W = regressor(robot, *random_states(robot, rng, 60, within_limits=False))[:, :, columns].reshape(-1, len(columns))
    return int(np.linalg.matrix_rank(W, tol=1e-10 * np.linalg.norm(W, 2)))


def count(rng: np.random.Generator) -> Answer:
    """Base parameters of a planar arm, upright and on a table, and of a spatial one."""
    arms = {"planar": planar(), "table": planar(gravity=False), "spatial": spatial(), "wall": spatial(tilted=True)}
    bases = {name: base_parameters(robot, rng, only=inertial(robot)) for name, robot in arms.items()}
    upright = bases["planar"]
    row = upright.K[[upright.parameter_names[k] for k in upright.kept].index("link1.Izz")]
    together = dict(zip([upright.parameter_names[k] for k in upright.regrouped], row.tolist(), strict=True))
    lines = [
        Line("parameters", "inertial parameters of three links", len(inertial(arms["planar"])), 30),
        Line("planar", "base parameters, planar arm in a vertical plane", upright.rank, "12 … 15"),
        Line("table", "the same arm on a table (gravity along the axes)", bases["table"].rank),
        Line("spatial", "spatial arm, first axis vertical", bases["spatial"].rank),
        Line("wall", "the same arm on a wall", bases["wall"].rank),
        *(Line(f"{name} svd", f"{name}: rank by singular values", rank_by_svd(arms[name], rng)) for name in arms),
        Line("without", "planar: parameters without any effect", len(upright.without_effect), 3),
        Line("m2", "mass of link 2 in the group of link1.Izz: l₁² =", together["link2.m"], LENGTHS[0] ** 2, "m²"),
        Line("m3", "mass of link 3 in it", together["link3.m"], LENGTHS[0] ** 2, "m²"),
    ]
    listing = "; ".join(upright.names)
    return Answer(
        "7.4",
        "Base parameters of three links",
        tuple(lines),
        (
            "A planar arm shows three numbers a link, Izz, mx and my with what is grouped into them: 9, and 7 on a "
            "table, where the first link's mx and my are not seen. 12 to 15 is no planar arm's number; 15 is that "
            "of the spatial one with a vertical first axis, and 17 with any other.",
            f"They are: {listing}.",
            "What a planar arm does not show is not 'the centre of mass along gravity' but all that belongs to other "
            "axes: m z, Ixx, Ixy, Ixz, Iyy, Iyz of every link. link1.Izz + l₁²(m₂ + m₃) is right.",
            "No symbols are needed: columns of the regressor at random states tell rank and groups, of any tree.",
        ),
        ("steelyard info panda --base",),
    )
