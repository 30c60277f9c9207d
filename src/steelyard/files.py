"""Files that appear whole or not at all."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .errors import OptionError


def checked_output(path: str | Path, suffixes: tuple[str, ...]) -> Path:
    """The path, if a file of these kinds can be written there; said before the work, not after it."""
    path = Path(path)
    if path.suffix.lower() not in suffixes:
        raise OptionError(f"{path}: give a name that ends in {' or '.join(suffixes)}")
    if not path.parent.is_dir():
        raise OptionError(f"{path}: no folder {path.parent}; make it first")
    if path.is_dir():
        raise OptionError(f"{path} is a folder; give the name of a file")
    return path


@contextmanager
def whole_or_not(path: Path) -> Iterator[Path]:
    """A temporary name beside the path, which takes its place when the block ends well and vanishes when not."""
    if not path.parent.is_dir():
        raise OptionError(f"{path}: no folder {path.parent}; make it first")
    temporary = None
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name[:40]}-", suffix=path.suffix, dir=path.parent)
        os.close(handle)
        temporary = Path(name)
        yield temporary
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except OSError as error:
        raise OptionError(f"{path} cannot be written: {error.strerror or error}") from None
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
