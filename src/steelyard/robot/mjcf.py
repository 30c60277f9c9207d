"""MJCF files: what they include and refer to is checked before MuJoCo reads any of it."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import mujoco

from ..errors import ModelError
from .assets import SUFFIXES, Asset, LeftOut, assets_of, leave_out, root_folder, why_unusable
from .compiling import mujoco_speaks
from .xmltree import MAX_BYTES, MAX_DEPTH, Element, parse_xml, read_text

# Attributes by which a few characters ask for gigabytes, and the largest product of their numbers
_LARGEST = {
    "replicate": (("count",), 10_000),
    "flexcomp": (("count",), 10_000),
    "texture": (("width", "height"), 2**26),
    "hfield": (("nrow", "ncol"), 2**24),
    "size": (("nkey",), 100_000),
}
_LARGEST_USER = 100_000  # numbers of user data an element
# Free text; elsewhere a "%" is refused: MuJoCo 4.0 prints the name of an unknown class as a format, and dies of "%n"
_FREE_TEXT = ("file", "data", "value", "model")
_MAX_FILES = 1000


@dataclass(frozen=True)
class _Document:
    """One file of a model; `times` is how often what it holds is repeated, `depth` how deep it is included."""

    path: Path
    main: Path  # folder of the file at the top, in which MuJoCo looks first
    text: str
    depth: int = 0
    times: float = 1.0


def _product(element: Element, names: tuple[str, ...]) -> float:
    product = 1.0
    for word in " ".join(element.get(name) for name in names).split():
        try:
            product *= max(1.0, abs(float(word)))
        except ValueError:
            return 1.0  # MuJoCo says what is wrong with it
    return product


def _refuse_excess(element: Element, times: float, where: str) -> float:
    """How often what is in this element is repeated; an error where that, or a size, is absurd."""
    names, largest = _LARGEST.get(element.tag, ((), 0))
    product = _product(element, names)
    repeated = times * product if element.tag in ("replicate", "flexcomp") else product
    if names and repeated > largest:
        what = " × ".join(names)
        raise ModelError(f"{where}, line {element.line}: <{element.tag}> {what} is {repeated:.3g}; at most {largest}")
    if element.tag == "size":
        for name in (n for n in element.attributes if n.startswith("nuser")):
            if _product(element, (name,)) > _LARGEST_USER:
                raise ModelError(f"{where}, line {element.line}: <size> {name} is more than {_LARGEST_USER}; lower it")
    return repeated if element.tag == "replicate" else times


def _locate(element: Element, document: _Document, root: Path, directories: tuple[str, ...] = ("",)) -> Path:
    """The file an element refers to, in the folders and the order in which MuJoCo looks for it."""
    where, file = f"{document.path}, line {element.line}", element.get("file")
    folders = (document.main, document.path.parent)
    candidates = [folder / directory / file for directory in directories for folder in folders]
    reasons = [why_unusable(path, root) for path in candidates]
    for reason in reasons:
        if reason not in (None, "is missing"):
            raise ModelError(
                f"{where}: <{element.tag} file={file!r}> {reason}; a model may name only files there: move the file, "
                "or, where you trust the model, give mujoco.MjSpec.from_file(…) in place of its path"
            )
    for path, reason in zip(candidates, reasons, strict=True):
        if reason is None:
            return path
    raise ModelError(f"{where}: <{element.tag} file={file!r}> is missing; put it beside {document.path.name}")


def _walk(root: Element, depth: int, times: float, where: str) -> Iterator[tuple[Element, int, float]]:
    stack = [(root, depth, times)]
    while stack:
        element, depth, times = stack.pop()
        for name, value in element.attributes.items():
            if "%" in value and not name.startswith(_FREE_TEXT):
                raise ModelError(f"{where}, line {element.line}: '%' in {name}='{value[:60]}'; use another character")
            if "nan" in value.casefold().split()[1:] or value.casefold().startswith("nan "):
                raise ModelError(f"{where}, line {element.line}: a nan in {name}='{value[:60]}'; give finite numbers")
        times = _refuse_excess(element, times, where)
        yield element, depth, times
        stack += [(child, depth + 1, times) for child in element.children]


def _survey(path: Path, text: str) -> list[Path]:
    """The folders of all files that make up the model, after checking that each may be read and holds nothing bad."""
    root, folders = root_folder(path), [path.parent]
    waiting, seen, total = [_Document(path, path.parent, text)], {path}, 0
    while waiting:
        document = waiting.pop(0)
        total += len(document.text)
        if total > MAX_BYTES or len(seen) > _MAX_FILES:
            raise ModelError(f"{path}: includes more than {_MAX_FILES} files or {MAX_BYTES // 2**20} MiB")
        tree = parse_xml(document.text, str(document.path), max(1, MAX_DEPTH - document.depth))
        for element, depth, times in _walk(tree, document.depth, document.times, str(document.path)):
            # MuJoCo compares "include" without regard to case, the other tags with
            included, attached = element.tag.casefold() == "include", element.tag == "model" and "file" in element
            if element.tag == "flexcomp" and "file" in element:  # read while parsing, so not among the assets
                compilers = [c for c in tree.children if c.tag == "compiler"]
                _locate(element, document, root, ("", *(c.get("meshdir") or c.get("assetdir") for c in compilers)))
            if not included and not attached:
                continue
            found = _locate(element, document, root).resolve()
            if found in seen:  # MuJoCo refuses a second inclusion itself
                continue
            seen.add(found)
            folders.append(found.parent)
            main = document.main if included else found.parent
            waiting.append(_Document(found, main, read_text(found), depth, times))
    return list(dict.fromkeys(folders))


def _places(file: str, directory: str, folders: list[Path]) -> Iterator[Path]:
    """Where an asset may lie; MuJoCo looks at the first, which is not where an included file would mean it."""
    yield folders[0] / directory / file
    for folder in folders:
        path = Path(file)
        inside = path.relative_to(folder) if path.is_relative_to(folder) else path
        yield folder / directory / inside
        yield folder / file


def _settle(spec: mujoco.MjSpec, asset: Asset, folders: list[Path], root: Path) -> str | None:
    """Point an asset at a file that may be read, or say why there is none."""
    compiler, missing = asset.element.compiler, "is missing"
    directory = compiler.texturedir if asset.kind == "texture" else compiler.meshdir
    suffixes = () if getattr(asset.element, "content_type", "") else SUFFIXES.get(asset.kind, ())
    for file in asset.files:
        places = list(_places(Path(file).name if spec.strippath else file, directory, folders))
        reasons = [why_unusable(place, root, suffixes) for place in places]
        k = next((k for k, reason in enumerate(reasons) if reason != missing), None)
        if k is None or reasons[k] is not None:
            return missing if k is None else reasons[k]
        if k > 0 and asset.kind != "texture":
            asset.element.file = str(places[k])
    return None


def read_mjcf(path: Path, text: str, notes: list[str], left_out: list[LeftOut]) -> mujoco.MjSpec:
    """The spec in an MJCF file, without the assets that cannot be read; `path` is resolved."""
    folders = _survey(path, text)
    where = str(path) if len(folders) == 1 else f"{path} or a file it includes"
    # MuJoCo decodes by suffix, so a name with one that it knows; the text is the one that was checked
    name = path.with_name(f"{path.name}.xml")
    with mujoco_speaks(where, notes):
        spec = mujoco.MjSpec.from_file(str(name), include={str(name): text.encode()})
        for asset in assets_of(spec):
            why = _settle(spec, asset, folders, root_folder(path))
            if why is not None:
                left_out.append(leave_out(spec, asset, why, where))
    return spec
