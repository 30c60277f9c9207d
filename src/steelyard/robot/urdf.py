"""URDF files: checked and cleaned here, then read by MuJoCo's own importer.

A link weighs what its <inertial> says and nothing without one, as URDF defines it: MuJoCo alone would weigh collision
geometry at 1000 kg/m³, so that a robot's dynamics would hang on whether its meshes are found. Visual geometry is not
read. Links that are welded keep their names and their own ten parameters. `<dynamics armature="…">` is our extension.
"""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn
from urllib.parse import unquote

import mujoco
import numpy as np

from ..errors import ModelError, unknown_name
from .assets import SUFFIXES, LeftOut, root_folder, why_unusable
from .compiling import MAX_BODIES, mujoco_speaks
from .inertials import nearest_physical
from .xmltree import Element, parse_xml, write_xml

JOINT_TYPES = ("revolute", "continuous", "prismatic", "fixed", "floating", "planar", "spherical")
_SHAPES = {
    "box": ("size", 3),
    "sphere": ("radius", 1),
    "cylinder": ("radius length", 1),
    "capsule": ("radius length", 1),
}
_INERTIA = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
_MAX_DEPTH = 100
_LEVELS_UP = 5  # folders above the URDF's own in which a package is looked for
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?inf(inity)?", re.IGNORECASE)
# Elements of other tools that say something about the dynamics, which MuJoCo's importer does not read
_FOREIGN = {
    "rotor_inertia": 'give the joint\'s rotor inertia as <dynamics armature="…"/>, in kg·m² at the joint',
    "springStiffness": "springs are not modelled",
    "implicitSpringDamper": "springs are not modelled",
}


class _Reader:
    """One URDF on its way to a clean tree; collects notes."""

    def __init__(self, path: Path, where: str, notes: list[str]):
        self.path, self.where, self.notes = path, where, notes
        self.meshes: dict[str, Path] = {}  # the name of a file in the clean tree: where it lies
        self.left_out: list[LeftOut] = []
        self.meshdir: str | None = None

    def fail(self, element: Element, what: str) -> NoReturn:
        raise ModelError(f"{self.where}, line {element.line}: {what}")

    def numbers(self, element: Element, name: str, count: int, owner: str, finite: bool = True) -> list[float]:
        words = element.get(name).split()
        values = [float(word) for word in words if _NUMBER.fullmatch(word)]
        if len(values) != len(words) or len(values) != count or (finite and not np.isfinite(values).all()):
            wanted = "a finite number" if count == 1 else f"{count} finite numbers"
            got = f"not '{element.get(name)[:60]}'" if name in element else "and is missing"
            self.fail(element, f"{owner}: <{element.tag}> {name} must be {wanted}, {got}")
        return values

    def copy(self, element: Element, owner: str, **counts: int) -> Element:
        """The element with those of these attributes that it has, as numbers in canonical form."""
        clean = Element(element.tag, line=element.line)
        for name, count in counts.items():
            if name in element:
                clean.attributes[name] = " ".join(map(repr, self.numbers(element, name, count, owner)))
        return clean

    def origin(self, element: Element, owner: str) -> list[Element]:
        origin = element.find("origin")
        return [] if origin is None else [self.copy(origin, owner, xyz=3, rpy=3)]

    def inertial(self, link: Element, owner: str) -> list[Element]:
        given = link.find("inertial")
        if given is None:
            return []
        parts = {tag: given.find(tag) for tag in ("mass", "inertia")}
        for tag, part in parts.items():
            if part is None:
                self.fail(given, f"{owner}: its <inertial> has no <{tag}>; add it, or delete the <inertial>")
        mass, inertia = parts["mass"], parts["inertia"]
        assert mass is not None and inertia is not None
        m = self.numbers(mass, "value", 1, owner)[0]
        xx, xy, xz, yy, yz, zz = (self.numbers(inertia, name, 1, owner)[0] for name in _INERTIA)
        if m < 0:
            self.fail(mass, f"{owner} has mass {m:g} kg; a mass is not negative")
        tensor = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        if m == 0 and not tensor.any():
            return []
        tensor, wrong = nearest_physical(tensor)
        if wrong:
            self.notes.append(f"{owner}: its inertia {wrong}")
        clean = Element(
            "inertia", {name: repr(float(v)) for name, v in zip(_INERTIA, tensor[np.triu_indices(3)], strict=True)}
        )
        return [Element("inertial", children=[*self.origin(given, owner), Element("mass", {"value": repr(m)}), clean])]

    def mesh(self, element: Element, owner: str) -> Element | None:
        uri = element.get("filename").strip()
        label = uri.rsplit("/", 1)[-1] or "without a file name"
        why = "is missing"
        for path, root in _places(uri, self.path, self.meshdir):
            reason = why_unusable(path, root, SUFFIXES["mesh"])
            if reason is None:
                resolved = path.resolve()
                # MuJoCo names a mesh for its file without the folder, and would take two of one name for the same
                known = next((name for name, lies in self.meshes.items() if lies == resolved), None)
                name = (
                    known
                    or f"{resolved.stem}{f'_{len(self.meshes)}' if self._taken(resolved) else ''}{resolved.suffix}"
                )
                self.meshes[name] = resolved
                clean = self.copy(element, owner, scale=3)
                clean.attributes["filename"] = name
                return clean
            why = reason if why == "is missing" else why
        self.left_out.append(LeftOut("mesh", label, why, 1))
        return None

    def _taken(self, path: Path) -> bool:
        return any(Path(name).stem == path.stem for name in self.meshes)

    def collision(self, element: Element, owner: str, name: str) -> list[Element]:
        geometry = element.find("geometry")
        shape = next((child for child in geometry.children), None) if geometry else None
        if shape is None or shape.tag not in (*_SHAPES, "mesh"):
            self.notes.append(f"{owner}: a collision shape of unknown kind left out")
            return []
        clean: Element | None
        if shape.tag == "mesh":
            clean = self.mesh(shape, owner)
        else:
            names, count = _SHAPES[shape.tag]
            sizes = [x for attribute in names.split() for x in self.numbers(shape, attribute, count, owner)]
            clean = self.copy(shape, owner, **dict.fromkeys(names.split(), count))
            if min(sizes) <= 0:
                self.notes.append(f"{owner}: a collision {shape.tag} of size {min(sizes):g} left out")
                clean = None
        if clean is None:
            return []
        inside = [*self.origin(element, owner), Element("geometry", children=[clean])]
        return [Element("collision", {"name": name}, element.line, inside)]

    def link(self, element: Element) -> Element:
        owner = f"link '{element.get('name')}'"
        inertial = self.inertial(element, owner)
        shapes = element.all("collision")
        # Every shape under a name of its own: MuJoCo prints a warning on the terminal where one is repeated
        names = [f"{element.get('name')}_collision{k}" for k in range(len(shapes))]
        collisions = [c for shape, name in zip(shapes, names, strict=True) for c in self.collision(shape, owner, name)]
        return Element("link", {"name": element.get("name")}, element.line, inertial + collisions)

    def limit(self, joint: Element, kind: str, owner: str) -> list[Element]:
        given = joint.find("limit")
        if given is None:
            return []
        values = {
            n: self.numbers(given, n, 1, owner, finite=False)[0] for n in ("lower", "upper", "effort") if n in given
        }
        effort = abs(values.get("effort", 0.0))
        limit = {"effort": repr(effort)} if 0 < effort < np.inf else {}
        lower, upper = values.get("lower", 0.0), values.get("upper", 0.0)
        if lower > upper:
            self.notes.append(f"{owner}: its lower limit {lower:g} is above its upper limit {upper:g}; both ignored")
        elif kind != "continuous" and np.isfinite([lower, upper]).all():
            limit |= {"lower": repr(lower), "upper": repr(upper)}
        return [Element("limit", limit)]

    def joint(self, element: Element) -> Element:
        owner, kind = f"joint '{element.get('name')}'", element.get("type")
        ends = [Element(tag, {"link": _end(element, tag)}) for tag in ("parent", "child")]
        children = [*ends, *self.origin(element, owner)]
        axis, dynamics, mimic = (element.find(tag) for tag in ("axis", "dynamics", "mimic"))
        if kind not in ("fixed", "floating"):
            if axis is not None:
                if not np.any(self.numbers(axis, "xyz", 3, owner)):
                    self.fail(axis, f"{owner}: its axis is zero; give it a direction")
                children.append(self.copy(axis, owner, xyz=3))
            children += self.limit(element, kind, owner)
        if dynamics is not None and kind != "fixed":
            clean = self.copy(dynamics, owner, damping=1, friction=1, armature=1)
            for name, value in clean.attributes.items():
                if name != "damping" and float(value) < 0:
                    self.fail(dynamics, f"{owner}: its {name} is {value}; it is not negative")
            children.append(clean)
        if mimic is not None and kind != "fixed":
            self.notes.append(
                f"{owner} mimics '{mimic.get('joint')}': the coupling is not carried, it is read as a joint of its own; "
                "lock it, or leave its bodies out"
            )
        return Element("joint", {"name": element.get("name"), "type": kind}, element.line, children)


def _end(joint: Element, tag: str) -> str:
    element = joint.find(tag)
    return element.get("link") if element is not None else ""


def _places(uri: str, urdf: Path, meshdir: str | None) -> Iterable[tuple[Path, Path]]:
    """Where the file of a URI may lie, and the folder that it must not lead out of."""
    own, root = urdf.parent, root_folder(urdf)
    scheme, found, rest = uri.partition("://")
    relative = rest if found else uri
    if meshdir is not None:
        yield from ((own / meshdir / name, root) for name in (relative, relative.rsplit("/", 1)[-1]))
    if found and scheme in ("package", "model"):
        package, _, inside = rest.partition("/")
        above = [folder for folder in urdf.parents if folder != folder.parent][: _LEVELS_UP + 1]
        if package in ("", ".", ".."):
            return
        for folder in above:
            if folder.name == package:
                yield folder / inside, folder
            elif (folder / package).is_dir():
                yield folder / package / inside, folder / package
    elif found and scheme == "file":
        yield Path(unquote(rest.removeprefix("localhost"))), root
    elif not found:
        yield own / uri, root


def _check_names(root: Element, where: str) -> tuple[list[Element], list[Element]]:
    links, joints = root.all("link"), root.all("joint")
    for element in (*links, *joints):
        if not element.get("name"):
            raise ModelError(f"{where}, line {element.line}: a <{element.tag}> without a name; name it")
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


def _check_tree(links: list[Element], joints: list[Element], where: str) -> None:
    """One root, one parent a link, no cycle: what MuJoCo's importer takes for granted or words badly."""
    names = [link.get("name") for link in links]
    parent: dict[str, Element] = {}
    for joint in joints:
        at, name = f"{where}, line {joint.line}", joint.get("name")
        if joint.get("type") not in JOINT_TYPES:
            raise ModelError(f"{at}: joint '{name}': {unknown_name('joint type', joint.get('type'), JOINT_TYPES)}")
        for tag in ("parent", "child"):
            if _end(joint, tag) not in names:
                raise ModelError(f"{at}: joint '{name}', {tag}: {unknown_name('link', _end(joint, tag), names)}")
        child = _end(joint, "child")
        if child in parent:
            raise ModelError(
                f"{at}: link '{child}' has two parents, by joints '{parent[child].get('name')}' and '{name}': that is a "
                "loop, and only trees can be identified; delete one of the two joints"
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
            name = _end(parent[name], "parent")
        known.update(path)


def _mujoco_extension(root: Element, reader: _Reader) -> list[Element]:
    """MuJoCo's own element in a URDF, without what would undo what is promised here."""
    given = root.find("mujoco")
    if given is None:
        return []
    clean = Element("mujoco")
    for section in (s for s in given.children if s.tag in ("compiler", "option", "size")):
        ours = ("meshdir", "assetdir", "texturedir", "strippath", "discardvisual", "fusestatic", "angle")
        clean.children.append(Element(section.tag, {k: v for k, v in section.attributes.items() if k not in ours}))
        if section.tag == "compiler":
            reader.meshdir = section.get("meshdir") or section.get("assetdir") or None
    return [clean]


def _foreign_notes(root: Element) -> list[str]:
    tags = {element.tag.rsplit(":", 1)[-1] for element in root.walk()}
    return [f"<{tag}> is not read: {remedy}" for tag, remedy in _FOREIGN.items() if tag in tags]


def read_urdf(path: Path, text: str, notes: list[str], left_out: list[LeftOut]) -> mujoco.MjSpec:
    """The spec in a URDF; `path` is resolved."""
    where = str(path)
    root = parse_xml(text, where, _MAX_DEPTH)
    if any(e.tag.startswith("xacro:") or any("${" in v for v in e.attributes.values()) for e in root.walk()):
        raise ModelError(f"{where} is a xacro file, not yet a URDF; expand it: xacro {path.name} > robot.urdf")
    links, joints = _check_names(root, where)
    _check_tree(links, joints, where)
    reader = _Reader(path, where, notes)
    extension = _mujoco_extension(root, reader)
    children = [*extension, *map(reader.link, links), *map(reader.joint, joints)]
    clean = Element("robot", {"name": root.get("name") or path.stem}, children=children)
    left_out += reader.left_out
    notes += _foreign_notes(root)
    with mujoco_speaks(where, notes, lines=False):
        spec = mujoco.MjSpec.from_string(write_xml(clean))
    spec.compiler.fusestatic = spec.compiler.discardvisual = False
    compiler = extension[0].find("compiler") if extension else None
    if compiler is None or "inertiafromgeom" not in compiler:
        spec.compiler.inertiafromgeom = mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_FALSE
        light = [f"'{link.get('name')}'" for link in links if link.find("collision") and not link.find("inertial")]
        if light:
            notes.append(f"without <inertial>, so without mass, though with collision geometry: {', '.join(light)}")
    for mesh in spec.meshes:
        mesh.file = str(reader.meshes[mesh.file])
    for joint in clean.all("joint"):
        dynamics = joint.find("dynamics")
        if dynamics is not None and "armature" in dynamics:
            for axis in [j for j in spec.joints if j.name in _joint_names(joint)]:
                axis.armature = float(dynamics.get("armature"))
    return spec


def _joint_names(joint: Element) -> list[str]:
    name = joint.get("name")
    return [f"{name}_{axis}" for axis in ("TX", "TY", "RZ")] if joint.get("type") == "planar" else [name]


def urdf_limits(text: str) -> dict[str, dict[str, float]]:
    """The limits of velocity and torque that a URDF states for its joints; zero and infinity state nothing."""
    found: dict[str, dict[str, float]] = {}
    for joint in parse_xml(text, "URDF", _MAX_DEPTH).all("joint"):
        limit = joint.find("limit")
        for key, attribute in (("velocity", "velocity"), ("torque", "effort")):
            word = limit.get(attribute).strip() if limit is not None else ""
            value = abs(float(word)) if _NUMBER.fullmatch(word) else 0.0
            if 0 < value < np.inf:
                for name in _joint_names(joint):
                    found.setdefault(name, {})[key] = value
    return found
