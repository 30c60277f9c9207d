"""The kinematic tree as the kernels read it: one record a link, one a degree of freedom.

A *link* is what one joint moves. A body with several joints is a chain of links of which only the last has mass; a
body without a joint is a link that is fixed to its parent. Link 0 is the world, and parents come before children.
"""

import numpy as np

FIXED, HINGE, SLIDE, BALL, FREE = range(5)
KIND_NAMES = ("fixed", "hinge", "slide", "ball", "free")
DOFS = (0, 1, 1, 3, 6)  # velocities a joint of each kind has
COORDINATES = (0, 1, 1, 4, 7)  # positions, in MuJoCo's qpos layout

LINK = np.dtype(
    [
        ("kind", np.int64),
        ("parent", np.int64),  # link; 0 is the world, which is its own parent
        ("dof", np.int64),  # its first velocity
        ("coordinate", np.int64),  # its first position
        ("last_dof", np.int64),  # the last velocity that moves it, its own or an ancestor's; -1: none
        ("body", np.int64),  # row of the body parameters, -1: a massless intermediate link
        # Rotation link -> parent is R0 + cos(q - reference) Rc + sin(q - reference) Rs for a hinge, R0 else.
        ("R0", np.float64, (3, 3)),
        ("Rc", np.float64, (3, 3)),
        ("Rs", np.float64, (3, 3)),
        ("pos", np.float64, 3),  # link origin in the parent's frame, where the joint is a slide or fixed
        ("axis", np.float64, 3),  # joint axis in the parent's frame
        ("anchor_parent", np.float64, 3),  # joint anchor in the parent's frame
        ("anchor", np.float64, 3),  # joint anchor in the link's own frame
        ("reference", np.float64),  # joint position at which the link is where the model file draws it
    ],
    align=True,
)

DOF = np.dtype(
    [
        ("link", np.int64),
        ("parent", np.int64),  # the next velocity towards the world, -1: none
        ("rotary", np.int64),  # 1: turns about its axis, 0: moves along it
    ],
    align=True,
)
