"""How commands print: tables for people, JSON for machines."""

import json
import math
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table


def console() -> Console:
    """Standard output; a pipe gets plain text as wide as it needs."""
    out = Console(highlight=False, emoji=False)
    return out if out.is_terminal else Console(highlight=False, emoji=False, width=200, no_color=True)


def plain(value: Any) -> Any:
    """Numpy and tuples as what JSON has; what is not finite as null."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [plain(item) for item in value]
    if isinstance(value, np.bool_ | bool):
        return bool(value)
    if isinstance(value, np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return float(value) if math.isfinite(value) else None
    return value


def print_json(value: Any) -> None:
    print(json.dumps(plain(value), indent=2, ensure_ascii=False))


def table(title: str | None, *columns: str, right: tuple[str, ...] = ()) -> Table:
    """A table whose columns named in `right` are numbers."""
    made = Table(title=title and escape(title), title_justify="left", header_style="bold", box=None, pad_edge=False)
    for column in columns:
        made.add_column(column, justify="right" if column in right else "left", no_wrap=column in right)
    return made


def add_row(made: Table, *cells: str) -> None:
    """A row of texts as they are: a name like `arm[left]` is no markup."""
    made.add_row(*(escape(cell) for cell in cells))


def say(out: Console, text: str, before: str = "") -> None:
    """A line of text as it is, however long, after a word that may have markup."""
    out.print(before + escape(text), soft_wrap=True)


def number(x: float, digits: int = 4) -> str:
    """A number for people; nothing where nothing is known."""
    return "–" if not math.isfinite(x) else f"{x:.{digits}g}"
