"""The files a model refers to: which of them may be read, and how a model does without those that cannot.

Which files: a model file may come from anybody, so it may name only files below its own folder or below the folder
next above it (unless that holds the user's home), symbolic links followed. That covers `meshdir="assets"`, `../meshes`
and `<include file="panda.xml"/>` and keeps out `/etc/passwd` and `../../.ssh`. A URDF may also name files of packages
that lie near it (`package://`).

Identification needs no meshes, so one that is missing or unreadable is left out with a note; not so an include.
"""

import os
import re
import stat
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mujoco

from ..errors import ModelError

MAX_ASSET_BYTES = 256 * 2**20
SUFFIXES = {"mesh": (".stl", ".obj", ".msh"), "texture": (".png", ".ktx"), "skin": (".skn",)}
_NAMED = 3  # so many files are named in a note, the others counted


@dataclass(frozen=True, eq=False)
class Asset:
    """Something in a spec that is read from files."""

    kind: str  # "mesh" | "hfield" | "skin" | "texture"
    element: Any  # MuJoCo's own
    files: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.element.name

    @property
    def label(self) -> str:
        return Path(self.files[0]).name


@dataclass(frozen=True)
class LeftOut:
    """An asset that was left out, why, and what went with it."""

    kind: str
    label: str
    why: str
    geoms: int
    files: tuple[str, ...] = ()  # as the model names them


def root_folder(path: Path) -> Path:
    """The folder below which the model in `path` may name files."""
    own = path.resolve().parent
    above = own.parent
    return own if above == above.parent or Path(os.path.expanduser("~")).resolve().is_relative_to(above) else above


def why_unusable(path: Path, root: Path, suffixes: tuple[str, ...] = ()) -> str | None:
    """What keeps a file from being read, or None."""
    try:
        if not path.resolve().is_relative_to(root.resolve()):
            return f"lies outside {root}"
        status = path.stat()
    except (OSError, RuntimeError, ValueError):  # a loop of links, a NUL byte in the name
        return "is missing"
    if not stat.S_ISREG(status.st_mode):
        return "is not a regular file"
    if status.st_size > MAX_ASSET_BYTES:
        return f"is larger than {MAX_ASSET_BYTES // 2**20} MiB"
    if suffixes and path.suffix.lower() not in suffixes:
        return f"is not one of {', '.join(suffixes)}"
    return None


def assets_of(spec: mujoco.MjSpec) -> list[Asset]:
    """Everything that is read from files when the spec is compiled."""
    groups = (("mesh", spec.meshes), ("hfield", spec.hfields), ("skin", spec.skins))
    found = [Asset(kind, element, (element.file,)) for kind, elements in groups for element in elements if element.file]
    for texture in spec.textures:
        files = tuple(file for file in (texture.file, *texture.cubefiles) if file)
        if files:
            found.append(Asset("texture", texture, files))
    return found


def _moves(body: mujoco.MjsBody) -> bool:
    while body is not None:
        if body.joints:
            return True
        body = body.parent
    return False


def _weighs(geom: mujoco.MjsGeom, spec: mujoco.MjSpec) -> bool:
    """Whether the compiler would take a share of the body's inertia from this geom."""
    rule, (low, high) = spec.compiler.inertiafromgeom, spec.compiler.inertiagrouprange
    if rule == mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_FALSE or not low <= geom.group <= high:
        return False
    if rule == mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_AUTO and geom.parent.explicitinertial:
        return False
    not_given = geom.mass != geom.mass  # nan
    return bool(geom.density > 0 if not_given else geom.mass > 0)


def _leave_out_geoms(spec: mujoco.MjSpec, geoms: list, cause: str, where: str) -> None:
    for geom in geoms:
        if _weighs(geom, spec) and _moves(geom.parent):
            raise ModelError(
                f"{where}: body '{geom.parent.name}' has no inertial of its own, and {cause}, from which its mass "
                "would have come; give the body an inertial, or supply the file"
            )
    names = {geom.name for geom in geoms if geom.name}
    for pair in [p for p in spec.pairs if {p.geomname1, p.geomname2} & names]:
        spec.delete(pair)
    # A sensor on a geom that is gone would not compile, and identification does not read sensors
    for sensor in [s for s in spec.sensors if {s.objname, s.refname} & names]:
        spec.delete(sensor)
    for geom in geoms:
        spec.delete(geom)


def leave_out(spec: mujoco.MjSpec, asset: Asset, why: str, where: str) -> LeftOut:
    """Take an asset, and the geoms that need it, out of the spec."""
    attribute = {"mesh": "meshname", "hfield": "hfieldname"}.get(asset.kind)
    geoms = [geom for geom in spec.geoms if attribute and getattr(geom, attribute) == asset.name]
    _leave_out_geoms(spec, geoms, f"{asset.kind} '{asset.label}' {why}", where)
    if asset.kind == "mesh":
        for site in [s for s in spec.sites if s.meshname == asset.name]:
            site.meshname, site.type = "", mujoco.mjtGeom.mjGEOM_SPHERE
    if asset.kind == "texture":
        for material in spec.materials:
            material.textures = ["" if name == asset.name else name for name in material.textures]
    left_out = LeftOut(asset.kind, asset.label, why, len(geoms), asset.files)
    spec.delete(asset.element)
    return left_out


def _fails_alone(spec: mujoco.MjSpec, asset: Asset) -> str | None:
    """What MuJoCo says of a mesh in a model of its own."""
    mesh, probe = asset.element, mujoco.MjSpec()
    probe.assets, probe.modelfiledir, probe.strippath = spec.assets, spec.modelfiledir, spec.strippath
    probe.meshdir = mesh.compiler.meshdir
    probe.add_mesh(name="m", file=mesh.file, scale=mesh.scale, inertia=mesh.inertia, content_type=mesh.content_type)
    probe.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_MESH, meshname="m")
    try:
        probe.compile()
    except ValueError as error:
        return str(error)
    return None


def _unopened(spec: mujoco.MjSpec, message: str) -> tuple[Asset, str] | None:
    """The asset whose file MuJoCo could not open, and why."""
    found = re.search(r"(Error opening file|no decoder found for \w+ file) '([^']*)'", message)
    if found is None:
        return None
    why, file = "is missing" if "opening" in found[1] else "is of an unknown format", found[2]
    assets = assets_of(spec)
    exact = [asset for asset in assets if any(file.endswith(name) for name in asset.files)]
    stripped = [asset for asset in assets if Path(file).name == asset.label]  # where strippath is set
    return next(((asset, why) for asset in exact + stripped), None)


def _unreadable(spec: mujoco.MjSpec, message: str) -> tuple[Asset, str] | None:
    """The mesh that a compile error is about, and what MuJoCo says of it."""
    named = re.search(r"Element name '([^']*)'", message)
    meshes = [asset for asset in assets_of(spec) if asset.kind == "mesh"]
    suspects = [asset for asset in meshes if named and asset.name == named[1]]
    for asset in suspects or (meshes if "mesh" in message.lower() else []):
        reason = _fails_alone(spec, asset)
        if reason is not None:
            words = re.sub(r"Error:|\w+_decoder:|'[^']*/[^']*'|\bin \w+ file\b", "", reason.split("\n")[0])
            return asset, f"cannot be read ({' '.join(words.split())})"
    return None


def mender(spec: mujoco.MjSpec, where: str, left_out: list[LeftOut]) -> Callable[[str], bool]:
    """A function that leaves out the asset that a compile error is about, and says whether there was one."""

    def mend(message: str) -> bool:
        culprit = _unopened(spec, message) or _unreadable(spec, message)
        if culprit is not None:
            left_out.append(leave_out(spec, *culprit, where))
        return culprit is not None

    return mend


def notes_on(left_out: Iterable[LeftOut]) -> list[str]:
    """One sentence for each kind of asset and reason."""
    groups: dict[tuple[str, str], list[LeftOut]] = {}
    for one in left_out:
        groups.setdefault((one.kind, one.why), []).append(one)
    notes = []
    for (kind, why), members in groups.items():
        labels = list(dict.fromkeys(f"'{one.label}'" for one in members))
        shown = ", ".join(labels[:_NAMED]) + (f" and {len(labels) - _NAMED} more" if len(labels) > _NAMED else "")
        geoms = sum(one.geoms for one in members)
        gone = f"{geoms} geom{'' if geoms == 1 else 's'} left out" if geoms else "left out"
        if len(labels) == 1:
            notes.append(f"{kind} {shown} {why}: {gone}")
        else:
            many = {"mesh": "meshes"}.get(kind, f"{kind}s")
            notes.append(f"{many} {shown}: each {why}: {gone}")
    return notes


def named_left_out(left_out: Iterable[LeftOut]) -> str:
    """What is missing from a model that was read without some of its files."""
    geoms: dict[str, int] = {}
    for one in left_out:
        geoms[one.label] = geoms.get(one.label, 0) + one.geoms
    words = [f"'{name}'" + (f" ({n} geom{'' if n == 1 else 's'})" if n else "") for name, n in geoms.items()]
    return ", ".join(words[:_NAMED]) + (f" and {len(words) - _NAMED} more" if len(words) > _NAMED else "")
