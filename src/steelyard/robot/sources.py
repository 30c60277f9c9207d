"""Whatever a user calls a model, as a spec that can be edited and the model it compiles to."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mujoco
import yaml

from ..errors import ModelError
from .assets import LeftOut, mender, notes_on
from .compiling import compile_spec, float_the_base, mujoco_speaks, refuse_loops, refuse_not_finite
from .dh import dh_limits, read_dh
from .dh_table import parse_dh, plain
from .inertials import changed_by_compiler
from .mjcf import read_mjcf
from .rebuilding import rebuild_spec
from .urdf import read_urdf, urdf_limits
from .xmltree import parse_xml, read_text

_ROOTS = {"mujoco": "mjcf", "robot": "urdf"}
# Other roots people have at hand, and the way out
_ADVICE = {
    "mujocoinclude": "it is made to be included; give the file that includes it",
    "sdf": "SDF is not read; convert it to URDF or MJCF",
    "COLLADA": "it is a mesh; give the model file that uses it",
}
_BINARY = {
    ".mjb": "a compiled model; load it with mujoco.MjModel.from_binary_path(…) and give that",
    ".mjz": "an archive; load it with mujoco.MjSpec.from_zip(…) and give that",
    ".zip": "an archive; load it with mujoco.MjSpec.from_zip(…), or unpack it",
}


@dataclass(frozen=True, eq=False)
class Source:
    """A model as it was handed over, and what became of it on the way."""

    kind: str  # "mjcf" | "urdf" | "dh" | "spec" | "model"
    name: str
    path: Path | None  # the file, where there is one
    text: str | None  # the XML or YAML of that file; for a mapping, the same as YAML
    spec: mujoco.MjSpec  # a copy that belongs to this source, not yet compiled
    model: mujoco.MjModel  # what it compiles to
    notes: tuple[str, ...]  # what was changed or left out on the way
    left_out: tuple[LeftOut, ...] = ()  # files that could not be read

    def __getstate__(self) -> dict[str, Any]:
        # A worker process gets the compiled model, which is all that it needs; MuJoCo's spec cannot be sent.
        return {**self.__dict__, "spec": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, spec=rebuild_spec(state["model"], []))


@dataclass(frozen=True, eq=False)
class _Draft:
    kind: str
    where: str  # the source in errors
    path: Path | None
    text: str | None
    spec: mujoco.MjSpec


def _kind_of(path: Path, text: str) -> str:
    """What a file is, by its content."""
    if not text.lstrip().startswith("<"):
        if path.suffix.lower() in (".xml", ".mjcf", ".urdf"):
            raise ModelError(f"{path} is not XML: it does not begin with '<'")
        return "dh"
    tag = parse_xml(text, str(path)).tag
    if tag not in _ROOTS:
        advice = _ADVICE.get(tag, "MJCF has the root <mujoco>, URDF <robot>")
        raise ModelError(f"{path} has the root element <{tag[:60]}>, which is no robot model: {advice}")
    return _ROOTS[tag]


def _from_file(given: str | Path, notes: list[str], left_out: list[LeftOut]) -> _Draft:
    if str(given).lstrip().startswith("<"):
        raise ModelError("this is XML text, not a path; give mujoco.MjSpec.from_string(text), or save it to a file")
    path = Path(given)
    if path.suffix.lower() in _BINARY and path.is_file():
        raise ModelError(f"{path} is {_BINARY[path.suffix.lower()]}")
    text = read_text(path)
    kind, resolved = _kind_of(path, text), path.resolve()
    if kind == "mjcf":
        spec = read_mjcf(resolved, text, notes, left_out)
    elif kind == "urdf":
        spec = read_urdf(resolved, text, notes, left_out)
    else:
        spec = read_dh({"name": path.stem} | parse_dh(text, str(path)), str(path), notes)
    return _Draft(kind, str(path), path, text, spec)


def _from_mapping(given: Mapping, notes: list[str]) -> _Draft:
    where = "the DH table"
    table = plain(given, where)
    try:
        text = yaml.safe_dump(table, sort_keys=False)
    except (yaml.YAMLError, RecursionError, ValueError, TypeError) as error:
        raise ModelError(f"{where} cannot be written as YAML: {str(error)[:200]}") from None
    return _Draft("dh", where, None, text, read_dh(parse_dh(text, where), where, notes))


def _from_spec(given: mujoco.MjSpec, notes: list[str]) -> _Draft:
    where = "the MjSpec"
    with mujoco_speaks(where, notes):
        return _Draft("spec", where, None, None, given.copy())


def _from_model(given: mujoco.MjModel, notes: list[str]) -> _Draft:
    where = "the MjModel"
    refuse_not_finite(given, where)
    refuse_loops(given, where)  # the rebuilt spec has no constraints any more
    with mujoco_speaks(where, notes):
        return _Draft("model", where, None, None, rebuild_spec(given, notes))


def _draft(model: object, notes: list[str], left_out: list[LeftOut]) -> _Draft:
    if isinstance(model, str | Path):
        return _from_file(model, notes, left_out)
    if isinstance(model, mujoco.MjSpec):
        return _from_spec(model, notes)
    if isinstance(model, mujoco.MjModel):
        return _from_model(model, notes)
    if isinstance(model, Mapping):
        return _from_mapping(model, notes)
    raise ModelError(
        f"an object of type {type(model).__name__} is not a robot model; give the path of an MJCF, URDF or DH file, "
        "an mujoco.MjSpec, an mujoco.MjModel, or a DH table as a mapping"
    )


def stated_limits(source: Source) -> dict[str, dict[str, float]]:
    """The limits 'velocity' and 'torque' that the text of a source states for joints, where MuJoCo keeps none."""
    if source.text is None or source.kind not in ("urdf", "dh"):
        return {}
    return urdf_limits(source.text) if source.kind == "urdf" else dh_limits(source.text)


def read_source(
    model: str | Path | mujoco.MjSpec | mujoco.MjModel | Mapping[str, Any], *, floating_base: bool = False
) -> Source:
    """Read a file (MJCF, URDF, DH table), an MjSpec, an MjModel or a DH mapping; every failure is a `ModelError`."""
    notes: list[str] = []
    left_out: list[LeftOut] = []
    draft = _draft(model, notes, left_out)
    where, spec = draft.where, draft.spec
    if floating_base:
        with mujoco_speaks(where, notes):
            notes += float_the_base(spec, where)
    compiled = compile_spec(spec, where, notes, mender(spec, where, left_out), lines=draft.kind == "mjcf")
    refuse_not_finite(compiled, where)
    refuse_loops(compiled, where)
    if compiled.nv == 0:
        raise ModelError(f"{where}: nothing in it moves; give a model with joints, or let its base float")
    notes += changed_by_compiler(spec, compiled)
    name = spec.modelname if spec.modelname not in ("", "MuJoCo Model") else draft.path.stem if draft.path else "robot"
    said = (*notes_on(left_out), *notes)
    return Source(draft.kind, name, draft.path, draft.text, spec, compiled, said, tuple(left_out))
