"""One link, one joint of a URDF: checked, and reduced to what MuJoCo's importer is to see."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn
from urllib.parse import unquote

import numpy as np

from ..errors import ModelError
from .assets import SUFFIXES, LeftOut, root_folder, why_unusable
from .inertials import Mended, nearest_physical, negative_moment
from .xmltree import Element

_SHAPES = {
    "box": ("size", 3),
    "sphere": ("radius", 1),
    "cylinder": ("radius length", 1),
    "capsule": ("radius length", 1),
}
INERTIA = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
_LEVELS_UP = 5  # folders above the URDF's own in which a package is looked for
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?inf(inity)?", re.IGNORECASE)


def end(joint: Element, tag: str) -> str:
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


class Cleaner:
    """One URDF on its way to a clean tree; collects notes."""

    def __init__(self, path: Path, where: str, notes: list[str]):
        self.path, self.where, self.notes = path, where, notes
        self.meshes: dict[str, tuple[Path, str]] = {}  # file name in the clean tree: where it lies, its scale
        self.left_out: list[LeftOut] = []
        self.meshdir: str | None = None

    def fail(self, element: Element, what: str) -> NoReturn:
        raise ModelError(f"{self.where}, line {element.line}: {what}")

    def numbers(self, element: Element, name: str, count: int, owner: str, finite: bool = True) -> list[float]:
        words = element.get(name).split()
        values = [float(word) for word in words if NUMBER.fullmatch(word)]
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

    def part(self, element: Element, tag: str, owner: str) -> Element:
        part = element.find(tag)
        if part is None:
            self.fail(element, f"{owner}: its <{element.tag}> has no <{tag}>; add it, or delete the <{element.tag}>")
        return part

    def inertial(self, link: Element, owner: str) -> list[Element]:
        given = link.find("inertial")
        if given is None:
            return []
        mass, inertia = (self.part(given, tag, owner) for tag in ("mass", "inertia"))
        m = self.numbers(mass, "value", 1, owner)[0]
        xx, xy, xz, yy, yz, zz = (self.numbers(inertia, name, 1, owner)[0] for name in INERTIA)
        if m < 0:
            self.fail(mass, f"{owner} has mass {m:g} kg; a mass is not negative")
        tensor = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        if m == 0 and not tensor.any():
            return []
        if negative := negative_moment(tensor):
            self.fail(inertia, f"{owner}: its inertia {negative}")
        tensor, wrong = nearest_physical(tensor)
        if wrong:
            self.notes.append(Mended(f"{owner}: its inertia {wrong}"))
        moments = map(repr, tensor[np.triu_indices(3)].tolist())
        clean = [Element("mass", {"value": repr(m)}), Element("inertia", dict(zip(INERTIA, moments, strict=True)))]
        return [Element("inertial", children=[*self.origin(given, owner), *clean])]

    def mesh_name(self, path: Path, scale: str) -> str:
        """A file name for the clean tree; MuJoCo names a mesh for it and takes two of one name for the same."""
        known = next((name for name, of in self.meshes.items() if of == (path, scale)), None)
        stems = {Path(name).stem for name in self.meshes}
        free = (stem for stem in (path.stem, *(f"{path.stem}_{k}" for k in range(len(stems) + 1))) if stem not in stems)
        name = known or f"{next(free)}{path.suffix}"
        self.meshes[name] = (path, scale)
        return name

    def mesh(self, element: Element, owner: str) -> Element | None:
        uri, clean, why = element.get("filename").strip(), self.copy(element, owner, scale=3), "is missing"
        for path, root in _places(uri, self.path, self.meshdir):
            reason = why_unusable(path, root, SUFFIXES["mesh"])
            if reason is None:
                clean.attributes["filename"] = self.mesh_name(path.resolve(), clean.get("scale"))
                return clean
            why = reason if why == "is missing" else why
        self.left_out.append(LeftOut("mesh", uri.rsplit("/", 1)[-1][:60], why, 1, (uri,)))
        return None

    def collision(self, element: Element, owner: str, name: str) -> list[Element]:
        geometry = element.find("geometry")
        shape = next(iter(geometry.children), None) if geometry is not None else None
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
        ends = [Element(tag, {"link": end(element, tag)}) for tag in ("parent", "child")]
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
                f"{owner} mimics '{mimic.get('joint')}': the coupling is not carried, it is read as a joint of its "
                "own; lock it, or leave its bodies out"
            )
        return Element("joint", {"name": element.get("name"), "type": kind}, element.line, children)
