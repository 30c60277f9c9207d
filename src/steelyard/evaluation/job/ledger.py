"""Which stages of a study are finished: a stage whose inputs are unchanged, and whose files are whole, stays."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ...errors import OptionError
from ...files import whole_or_not

NAME = "stages.json"


def digest_of(*values: Any) -> str:
    """A hash of settings and of the keys of what came before."""
    return hashlib.sha256(json.dumps(values, sort_keys=True, default=str).encode()).hexdigest()[:32]


def file_digest(path: Path) -> str:
    """A hash of what is in a file, or in all files of a folder."""
    if path.is_dir():
        return digest_of([(str(p.relative_to(path)), file_digest(p)) for p in sorted(path.rglob("*")) if p.is_file()])
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class Ledger:
    """The stages that were finished in a folder, on disk after each of them."""

    def __init__(self, folder: Path, forget: bool = False) -> None:
        self.folder = folder
        self.path = folder / NAME
        self._stages: dict[str, dict[str, Any]] = {} if forget else self._read()

    def _read(self) -> dict[str, dict[str, Any]]:
        try:
            stages = json.loads(self.path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError):
            raise OptionError(
                f"{self.path} cannot be read; remove it, and the study is done from the beginning"
            ) from None
        return stages if isinstance(stages, dict) else {}

    def holds(self, stage: str, key: str) -> bool:
        """Whether this very stage was finished, and its files are as it left them."""
        done = self._stages.get(stage)
        if not isinstance(done, Mapping) or done.get("key") != key or not isinstance(done.get("files"), Mapping):
            return False
        paths = {self.folder / name: digest for name, digest in done["files"].items()}
        return all(path.exists() and file_digest(path) == digest for path, digest in paths.items())

    def finish(self, stage: str, key: str, files: Iterable[Path]) -> None:
        told = {str(path.relative_to(self.folder)): file_digest(path) for path in files}
        self._stages[stage] = {"key": key, "files": told}
        with whole_or_not(self.path) as temporary:
            temporary.write_text(json.dumps(self._stages, indent=1), encoding="utf-8")
