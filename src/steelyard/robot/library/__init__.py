"""Robots that come with Steelyard: mesh-free MJCF models, each with its sidecar of limits and defaults."""

import atexit
import shutil
import tempfile
from functools import cache
from importlib.resources import files
from pathlib import Path

from ...errors import ModelError, unknown_name


@cache
def _folder() -> Path:
    """The library as a folder on disk; one read from an archive is unpacked once, sidecars beside their models."""
    source = files(__name__)
    if isinstance(source, Path):
        return source
    folder = Path(tempfile.mkdtemp(prefix="steelyard-library-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for entry in source.iterdir():
        if entry.name.endswith((".xml", ".yaml")):
            (folder / entry.name).write_bytes(entry.read_bytes())
    return folder


def library_names() -> tuple[str, ...]:
    """The names of the library's robots, sorted."""
    return tuple(sorted(path.stem for path in _folder().glob("*.xml")))


def library_path(name: str) -> Path:
    """The MJCF file of a library robot."""
    if name not in library_names():
        raise ModelError(unknown_name("library robot", name, library_names()))
    return _folder() / f"{name}.xml"
