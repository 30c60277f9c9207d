"""URDF of a robot that comes from a URDF: the text of the user, with the numbers replaced and nothing else touched."""

import os
from pathlib import Path

import numpy as np

from .export_inertials import changed_bodies, joint_values, number, source_of, source_values, stated
from .export_urdf import inertial
from .robot import Robot
from .xmledit import Editor, Span, pretty, spans
from .xmltree import Element

_ATTRIBUTE = {"damping": "damping", "friction": "coulomb", "armature": "armature"}
# What in MuJoCo's own element would change stated inertias when the file is read
_REWRITES = ("inertiafromgeom", "balanceinertia", "settotalmass", "boundmass", "boundinertia")


def _joint_names(joint: Span) -> list[str]:
    name = joint.attributes["name"]
    return [f"{name}{axis}" for axis in ("_TX", "_TY", "_RZ")] if joint.attributes["type"] == "planar" else [name]


def _set_link(robot: Robot, link: Span, editor: Editor) -> None:
    parameters = robot.body_parameters[robot.bodies.index(link.attributes["name"])]
    element, old = inertial(*stated(parameters)), link.find("inertial")
    if old is None:
        editor.put(link, element)
    else:
        editor.replace(old, pretty(element, editor.indent(old)).strip())


def _set_joint(robot: Robot, span: Span, editor: Editor) -> None:
    joint = next((joint for joint in robot.joints if joint.name in _joint_names(span)), None)
    if joint is None:
        return
    values = joint_values(robot, joint)
    old = span.find("dynamics")
    if values == source_values(robot, joint):
        return
    written = {name: number(values[prop]) for name, prop in _ATTRIBUTE.items() if values[prop] or name != "armature"}
    if old is None:
        editor.put(span, Element("dynamics", written))
    else:
        dropped = {"armature": None} if "armature" not in written and "armature" in old.attributes else {}
        editor.set_attributes(old, {**written, **dropped})


def _set_files(editor: Editor, old: Path, new: Path) -> None:
    """Relative names of files are relative to the folder of the URDF."""
    if old == new:
        return
    for span in editor.root.walk():
        if span.tag in ("mesh", "texture"):
            names = ["filename"]
        elif span.tag == "compiler":
            names = ["meshdir", "assetdir", "texturedir"]
        else:
            continue
        values = {name: span.attributes[name] for name in names if span.attributes.get(name)}
        relative = {n: v for n, v in values.items() if "://" not in v and not os.path.isabs(v) and (old / v).exists()}
        if relative:
            editor.set_attributes(span, {n: os.path.relpath(old / v, new) for n, v in relative.items()})


def _float_base(robot: Robot, editor: Editor) -> None:
    """The free joint that `floating_base=True` gave the root link."""
    known = {name for joint in editor.root.all("joint") for name in _joint_names(joint)}
    added = [joint for joint in robot.joints if joint.name not in known]
    for joint in added:
        ends = [Element("parent", {"link": "world"}), Element("child", {"link": joint.body})]
        values = {name: number(joint_values(robot, joint)[prop]) for name, prop in _ATTRIBUTE.items()}
        children = [*ends, Element("dynamics", values)]
        editor.put(editor.root, Element("link", {"name": "world"}))
        editor.put(editor.root, Element("joint", {"name": joint.name, "type": "floating"}, children=children))


def is_editable(robot: Robot) -> bool:
    """Whether the text of the source is a URDF that can take the robot's numbers."""
    source = source_of(robot)
    if source.kind != "urdf" or source.text is None or source.path is None:
        return False
    root = spans(source.text.encode("utf-8"))
    known = {name for joint in root.all("joint") for name in _joint_names(joint)}
    # A base that was let float, but hangs on a link 'world' by a joint of its own
    floats = any(joint.name not in known for joint in robot.joints)
    return not (floats and any(link.attributes["name"] == "world" for link in root.all("link")))


def bodies_in_text(robot: Robot) -> frozenset[int]:
    """MuJoCo's numbers of the bodies whose inertial will be written."""
    source = source_of(robot)
    root = spans((source.text or "").encode("utf-8"))
    settings = [compiler for section in root.all("mujoco") for compiler in section.all("compiler")]
    if any(name in compiler.attributes for compiler in settings for name in _REWRITES):
        heavy = np.array(source.model.body_mass)[robot.model_bodies] > 0
        return changed_bodies(robot) | frozenset(robot.model_bodies[heavy].tolist())
    return changed_bodies(robot)


def edit_urdf(robot: Robot, path: Path) -> str:
    """The user's URDF with the numbers of a robot that `settle` has prepared, as it is to stand at `path`."""
    source = source_of(robot)
    assert source.text is not None
    assert source.path is not None
    editor = Editor(source.text)
    for compiler in [c for section in editor.root.all("mujoco") for c in section.all("compiler")]:
        dropped = dict.fromkeys(name for name in _REWRITES if name in compiler.attributes)
        if dropped:
            editor.set_attributes(compiler, dropped)
    written = bodies_in_text(robot)
    links = {link.attributes["name"]: link for link in editor.root.all("link")}
    for name, b in zip(robot.bodies, robot.model_bodies.tolist(), strict=True):
        if b in written:
            _set_link(robot, links[name], editor)
    for joint in editor.root.all("joint"):
        _set_joint(robot, joint, editor)
    _float_base(robot, editor)
    _set_files(editor, source.path.resolve().parent, path.resolve().parent)
    return editor.result()
