"""URDF files: checked and cleaned here, then read by MuJoCo's own importer.

A link weighs what its <inertial> says and nothing without one, as URDF defines it: MuJoCo alone would weigh collision
geometry at 1000 kg/m³, so that a robot's dynamics would hang on whether its meshes are found. Visual geometry is not
read. Links that are welded keep their names and their own ten parameters. `<dynamics armature="…">` is our extension.
"""

from pathlib import Path

import mujoco
import numpy as np

from ..errors import ModelError, unknown_name
from .assets import LeftOut
from .compiling import MAX_BODIES, mujoco_speaks
from .inertials import PLACEHOLDER_MASS, PLACEHOLDER_RADIUS, SPECK_MASS, SPECK_RADIUS
from .urdf_elements import INERTIA, NUMBER, Cleaner, end
from .xmltree import Element, parse_xml, write_xml

JOINT_TYPES = ("revolute", "continuous", "prismatic", "fixed", "floating", "planar", "spherical")
_LONGEST_NAME = 200
_MAX_DEPTH = 100
# Elements of other tools that say something about the dynamics, which MuJoCo's importer does not read
_FOREIGN = {
    "rotor_inertia": 'give the rotor\'s inertia at the joint as <dynamics armature="…"/>, in kg·m²',
    "springStiffness": "springs are not modelled",
    "implicitSpringDamper": "springs are not modelled",
}


def _check_names(root: Element, where: str) -> tuple[list[Element], list[Element]]:
    links, joints = root.all("link"), root.all("joint")
    for element in (*links, *joints):
        if not 0 < len(element.get("name")) <= _LONGEST_NAME:
            what = "too long a name; shorten it" if element.get("name") else "no name; name it"
            raise ModelError(f"{where}, line {element.line}: a <{element.tag}> has {what}")
    for elements in (links, joints):
        seen: dict[str, int] = {}
        for element in elements:
            name = element.get("name")
            if name in seen:
                again = f"'{name}' of line {seen[name]} comes again"
                raise ModelError(f"{where}, line {element.line}: {element.tag} {again}; rename one")
            seen[name] = element.line
    if not links:
        raise ModelError(f"{where}: has no links; is this a complete URDF?")
    if len(links) > MAX_BODIES:
        raise ModelError(f"{where}: {len(links)} links, more than the {MAX_BODIES} allowed; is this one robot?")
    return links, joints


def _parents(links: list[Element], joints: list[Element], where: str) -> dict[str, Element]:
    """The joint above each link, after making sure of what MuJoCo's importer takes for granted or words badly."""
    names = dict.fromkeys(link.get("name") for link in links)
    parent: dict[str, Element] = {}
    for joint in joints:
        at, name = f"{where}, line {joint.line}", joint.get("name")
        if joint.get("type") not in JOINT_TYPES:
            raise ModelError(f"{at}: joint '{name}': {unknown_name('joint type', joint.get('type')[:60], JOINT_TYPES)}")
        for tag in ("parent", "child"):
            if end(joint, tag) not in names:
                link = end(joint, tag)[:_LONGEST_NAME]
                raise ModelError(f"{at}: joint '{name}', {tag}: {unknown_name('link', link, names)}")
        child = end(joint, "child")
        if child in parent:
            raise ModelError(
                f"{at}: link '{child}' has two parents, by joints '{parent[child].get('name')}' and '{name}': that is "
                "a loop, and only trees can be identified; delete one of the two joints"
            )
        parent[child] = joint
    roots = [name for name in names if name not in parent]
    if len(roots) > 1:
        listed = ", ".join(f"'{name}'" for name in roots[:6])
        raise ModelError(f"{where}: {len(roots)} links without a parent ({listed}); join all but one to the tree")
    if "world" in parent:
        raise ModelError(f"{where}: link 'world' has a parent; MuJoCo keeps that name for the root, so rename the link")
    known = set(roots)
    for name in names:
        path = []
        while name not in known:
            if name in path:
                raise ModelError(f"{where}: the joints go round in a circle through link '{name}'; break it")
            path.append(name)
            name = end(parent[name], "parent")
        known.update(path)
    return parent


def _moves(link: str, parent: dict[str, Element]) -> bool:
    while link in parent:
        if parent[link].get("type") != "fixed":
            return True
        link = end(parent[link], "parent")
    return False


def _lone_movers(links: list[Element], parent: dict[str, Element]) -> list[Element]:
    """Links that move, without anything that weighs on them or welded to them; MuJoCo does not compile those."""
    holder = {}  # the link that carries another by welds alone
    for link in links:
        name = link.get("name")
        while name in parent and parent[name].get("type") == "fixed":
            name = end(parent[name], "parent")
        holder[link.get("name")] = name
    heavy = {holder[link.get("name")] for link in links if link.find("inertial") is not None}
    carriers = set(holder.values())
    return [x for x in links if (name := x.get("name")) in carriers and name in parent and name not in heavy]


def _give_weight(links: list[Element], parent: dict[str, Element], notes: list[str]) -> None:
    """Inertials for cleaned links that move and have none: placeholders where no link has one, else specks."""
    lone = _lone_movers(links, parent)
    if not lone:
        return
    nothing_known = not any(link.find("inertial") for link in links if _moves(link.get("name"), parent))
    mass, radius = (PLACEHOLDER_MASS, PLACEHOLDER_RADIUS) if nothing_known else (SPECK_MASS, SPECK_RADIUS)
    moment = repr(0.4 * mass * radius**2)
    for link in lone:
        tensor = {name: moment if name in ("ixx", "iyy", "izz") else "0" for name in INERTIA}
        parts = [Element("mass", {"value": repr(mass)}), Element("inertia", tensor)]
        link.children.insert(0, Element("inertial", children=parts))
    names = ", ".join(f"'{link.get('name')}'" for link in lone)
    size = f"a sphere of {mass:g} kg and radius {radius:g} m at the link's origin"
    notes.append(
        f"no moving link has an <inertial>: nominal figures are placeholders, {size}, for {names}"
        if nothing_known
        else f"{names} move without any <inertial>: read as next to massless, {size}"
    )


def _mujoco_extension(root: Element, cleaner: Cleaner) -> list[Element]:
    """MuJoCo's own element in a URDF, without what would undo what is promised here."""
    given = root.find("mujoco")
    if given is None:
        return []
    clean = Element("mujoco")
    for section in (s for s in given.children if s.tag in ("compiler", "option")):
        ours = ("meshdir", "assetdir", "texturedir", "strippath", "discardvisual", "fusestatic", "angle")
        kept = {name: value for name, value in section.attributes.items() if name not in ours}
        clean.children.append(Element(section.tag, kept, section.line, section.children))
        if section.tag == "compiler":
            cleaner.meshdir = section.get("meshdir") or section.get("assetdir") or None
    return [clean]


def _weighed_by_shape(extension: list[Element]) -> bool:
    """Whether the file's own <mujoco> element says how shapes weigh."""
    compiler = extension[0].find("compiler") if extension else None
    return compiler is not None and "inertiafromgeom" in compiler


def _foreign_notes(root: Element) -> list[str]:
    tags = {element.tag.rsplit(":", 1)[-1] for element in root.walk()}
    return [f"<{tag}> is not read: {remedy}" for tag, remedy in _FOREIGN.items() if tag in tags]


def _joint_names(joint: Element) -> list[str]:
    name = joint.get("name")
    return [f"{name}_{axis}" for axis in ("TX", "TY", "RZ")] if joint.get("type") == "planar" else [name]


def read_urdf(path: Path, text: str, notes: list[str], left_out: list[LeftOut]) -> mujoco.MjSpec:
    """The spec in a URDF; `path` is resolved."""
    where = str(path)
    root = parse_xml(text, where, _MAX_DEPTH)
    if any(e.tag.startswith("xacro:") or any("${" in v for v in e.attributes.values()) for e in root.walk()):
        raise ModelError(f"{where} is a xacro file, not yet a URDF; expand it: xacro {path.name} > robot.urdf")
    links, joints = _check_names(root, where)
    parents = _parents(links, joints, where)
    cleaner = Cleaner(path, where, notes)
    extension = _mujoco_extension(root, cleaner)
    clean_links = [cleaner.link(link) for link in links]
    if not _weighed_by_shape(extension):
        _give_weight(clean_links, parents, notes)
    children = [*extension, *clean_links, *map(cleaner.joint, joints)]
    clean = Element("robot", {"name": root.get("name") or path.stem}, children=children)
    left_out += cleaner.left_out
    notes += _foreign_notes(root)
    with mujoco_speaks(where, notes, lines=False):
        spec = mujoco.MjSpec.from_string(write_xml(clean))
    spec.compiler.fusestatic = spec.compiler.discardvisual = False
    if not _weighed_by_shape(extension):
        spec.compiler.inertiafromgeom = mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_FALSE
        shaped = [link.get("name") for link in clean_links if link.find("collision") and not link.find("inertial")]
        light = [f"'{name}'" for name in shaped if _moves(name, parents)]
        if light:
            notes.append(f"without <inertial>, so without mass, though with collision geometry: {', '.join(light)}")
    for mesh in spec.meshes:
        mesh.file = str(cleaner.meshes[mesh.file][0])
    for joint in clean.all("joint"):
        dynamics = joint.find("dynamics")
        if dynamics is not None and "armature" in dynamics:
            for axis in [j for j in spec.joints if j.name in _joint_names(joint)]:
                axis.armature = float(dynamics.get("armature"))
    return spec


def urdf_limits(text: str) -> dict[str, dict[str, float]]:
    """The limits of velocity and torque that a URDF states for its joints; zero and infinity state nothing."""
    found: dict[str, dict[str, float]] = {}
    for joint in parse_xml(text, "URDF", _MAX_DEPTH).all("joint"):
        limit = joint.find("limit")
        for key, attribute in (("velocity", "velocity"), ("torque", "effort")):
            word = limit.get(attribute).strip() if limit is not None else ""
            value = abs(float(word)) if NUMBER.fullmatch(word) else 0.0
            if 0 < value < np.inf:
                for name in _joint_names(joint):
                    found.setdefault(name, {})[key] = value
    return found
