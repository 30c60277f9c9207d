"""MJCF of a robot that comes from a single plain MJCF file: the text of the user with only the numbers replaced."""

from pathlib import Path

import mujoco
import numpy as np

from .assets import assets_of
from .export_inertials import OFFSET_PREFIX, joint_values, number, numbers, source_of, source_values, stated
from .robot import Robot
from .xmledit import Editor, Span, pretty
from .xmltree import Element

# Elements by which a body stands elsewhere in the text, or in it once and in the model many times
_INDIRECT = {"include", "attach", "replicate", "composite", "flexcomp"}
_ALIGNMENT = {"align", "alignfree"}  # of the frames of floating bodies with their inertia, which may be refused
_NO_GRAVITY = int(mujoco.mjtDisableBit.mjDSBL_GRAVITY)


def _is_plain(root: Span, model: mujoco.MjModel) -> bool:
    """Whether every body and joint of the model stands in the text, once and as it is."""
    tags = [span.tag.casefold() for span in root.walk()]
    tree = [span.tag for world in root.all("worldbody") for span in world.walk()]
    return (
        _INDIRECT.isdisjoint(tags)
        and all(_ALIGNMENT.isdisjoint(span.attributes) for span in root.walk())
        and tree.count("body") == model.nbody - 1
        and tree.count("joint") + tree.count("freejoint") == model.njnt
    )


def _named(root: Span, tag: str) -> dict[str, Span]:
    """The elements of the tree of bodies by name."""
    tree = [span for world in root.all("worldbody") for span in world.walk() if span.tag == tag]
    return {span.attributes["name"]: span for span in tree if "name" in span.attributes}


def _files_stay(robot: Robot, root: Span, path: Path) -> bool:
    """Whether the text names the files that were read, and names them rightly for its new place."""
    source = source_of(robot)
    assert source.path is not None
    in_text = [value for span in root.walk() for name, value in span.attributes.items() if name.startswith("file")]
    read = [file for asset in assets_of(source.spec) for file in asset.files]
    # Files that could not be read stay in the text as they are
    known = [*read, *(file for one in source.left_out for file in one.files)]
    return sorted(in_text) == sorted(known) and (not read or source.path.resolve().parent == path.resolve().parent)


def _set_body(robot: Robot, span: Span, row: int, editor: Editor) -> None:
    mass, com, I = stated(robot.body_parameters[row])
    full = [I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2]]
    element = Element("inertial", {"pos": numbers(com), "mass": number(mass), "fullinertia": numbers(full)})
    old = span.find("inertial")
    if old is None:
        editor.put(span, element, first=True)
    else:
        editor.replace(old, pretty(element).strip())


def _set_gravity(robot: Robot, editor: Editor) -> None:
    options = [option for option in editor.root.all("option") if "gravity" in option.attributes]
    if options:
        editor.set_attributes(options[-1], {"gravity": numbers(robot.gravity)})
    else:
        editor.put(editor.root, Element("option", {"gravity": numbers(robot.gravity)}))


def _keep_offsets(constant: dict[str, list[float]], editor: Editor) -> None:
    for custom in editor.root.all("custom"):
        for numeric in custom.all("numeric"):
            if numeric.attributes.get("name", "").startswith(OFFSET_PREFIX):
                editor.replace(numeric, "")
    if constant:
        kept = [Element("numeric", {"name": f"{OFFSET_PREFIX}{n}", "data": numbers(v)}) for n, v in constant.items()]
        editor.put(editor.root, Element("custom", children=kept))


def edit_mjcf(robot: Robot, path: Path, bodies: frozenset[int], constant: dict[str, list[float]]) -> str | None:
    """The text with the numbers of `bodies` and of the joints that changed; None where it cannot take them."""
    source = source_of(robot)
    if source.kind != "mjcf" or source.text is None:
        return None
    editor, model = Editor(source.text), source.model
    if not (_is_plain(editor.root, model) and _files_stay(robot, editor.root, path)):
        return None
    in_text = _named(editor.root, "body")
    rows = {b: k for k, b in enumerate(robot.model_bodies.tolist())}
    for b in bodies:
        if b not in rows or robot.bodies[rows[b]] not in in_text:
            return None
        _set_body(robot, in_text[robot.bodies[rows[b]]], rows[b], editor)
    in_text = _named(editor.root, "joint")
    for joint in robot.joints:
        values = joint_values(robot, joint)
        if values == source_values(robot, joint):
            continue
        if joint.name not in in_text or "springdamper" in in_text[joint.name].attributes:
            return None
        curved = model.dof_dampingpoly[robot.model_dofs[joint.dof]]
        new = {
            "armature": number(values["armature"]),
            "damping": numbers([values["damping"], *(curved if curved.any() else [])]),
            "frictionloss": number(values["coulomb"]),
        }
        editor.set_attributes(in_text[joint.name], new)
    if not np.array_equal(robot.gravity, model.opt.gravity):
        if model.opt.disableflags & _NO_GRAVITY:
            return None
        _set_gravity(robot, editor)
    _keep_offsets(constant, editor)
    return editor.result()
