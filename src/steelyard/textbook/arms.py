"""Arms of three links for the exercises, as models in text: all hinges turn about z of their body."""

from functools import cache

import mujoco

from ..robot.load import load_robot
from ..robot.robot import Robot

LENGTHS = (0.4, 0.3)  # m, of the first two links of the planar arm

_PLANAR = """<mujoco model="planar_three_link"><compiler angle="radian"/><option gravity="{gravity}"/>
 <worldbody>
  <body name="link1"><joint name="joint1" axis="0 0 1"/>
   <inertial mass="3" pos="0.18 0.02 0.01" fullinertia="0.01 0.05 0.05 0.001 0 0"/>
   <body name="link2" pos="0.4 0 0"><joint name="joint2" axis="0 0 1"/>
    <inertial mass="2" pos="0.14 -0.01 0.02" fullinertia="0.006 0.02 0.021 0 0.0005 0"/>
    <body name="link3" pos="0.3 0 0"><joint name="joint3" axis="0 0 1"/>
     <inertial mass="1" pos="0.08 0.01 0" fullinertia="0.002 0.005 0.006 0.0002 0 0"/>
    </body></body></body>
 </worldbody></mujoco>"""

_SPATIAL = """<mujoco model="spatial_three_link"><compiler angle="radian"/><option gravity="0 0 -9.81"/>
 <worldbody>
  <body name="link1" pos="0 0 0.3"><joint name="joint1" axis="0 0 1"/>
   <inertial mass="4" pos="0.01 0.02 -0.1" fullinertia="0.05 0.04 0.02 0.001 0.002 0.0005"/>
   <body name="link2" pos="0.05 0 0.1" quat="0.70710678118654757 0.70710678118654757 0 0">
    <joint name="joint2" axis="0 0 1"/>
    <inertial mass="3" pos="0.2 0.01 0.03" fullinertia="0.01 0.06 0.065 0.001 -0.002 0.0007"/>
    <body name="link3" pos="0.4 0 0"><joint name="joint3" axis="0 0 1"/>
     <inertial mass="1.5" pos="0.15 -0.02 0.01" fullinertia="0.003 0.02 0.021 0.0004 0.0003 0.0002"/>
    </body></body></body>
 </worldbody></mujoco>"""


@cache
def planar(gravity: bool = True) -> Robot:
    """Three parallel axes; gravity lies in the plane of the arm, or the arm lies on a table."""
    down = "0 -9.81 0" if gravity else "0 0 -9.81"
    return load_robot(mujoco.MjSpec.from_string(_PLANAR.format(gravity=down)))


@cache
def spatial(tilted: bool = False) -> Robot:
    """A turning column, a shoulder and an elbow; upright, or mounted on a wall."""
    gravity = (0.0, -9.81, 0.0) if tilted else (0.0, 0.0, -9.81)
    return load_robot(mujoco.MjSpec.from_string(_SPATIAL), gravity=gravity)
