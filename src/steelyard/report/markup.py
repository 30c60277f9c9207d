"""Pieces of a page as HTML. Texts go in plain and come out escaped; only what these functions made is taken as HTML."""

import itertools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import plotly.graph_objects as go

_numbers = itertools.count(1)


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


@dataclass(frozen=True)
class Named:
    """A name with what it stands for below it; as CSV, what it stands for."""

    name: str
    meaning: str


@dataclass(frozen=True)
class Toned:
    """A cell that says good, care or bad by its colour as well as by its words."""

    text: str
    tone: str
    value: float | None = None  # where the text is a number


Cell = str | float | int | None | Toned | Named


def html(text: object) -> Html:
    """Any text as HTML that shows it; HTML as it is."""
    return text if isinstance(text, Html) else Html(escape(str(text), quote=True))


def join(*parts: str, between: str = "") -> Html:
    return Html(between.join(html(part) for part in parts))


def paragraph(text: str, kind: str = "") -> Html:
    return Html(f'<p class="{kind}">{html(text)}</p>' if kind else f"<p>{html(text)}</p>")


def heading(text: str, small: str = "") -> Html:
    return Html(f"<h3>{html(text)}{f' <small>{html(small)}</small>' if small else ''}</h3>")


def number(x: float, digits: int = 4) -> str:
    """A number for people; a dash where nothing is known."""
    return "–" if not math.isfinite(x) else f"{x:.{digits}g}"


def percent(x: float, digits: int = 3) -> str:
    """A share as per cent."""
    return "–" if not math.isfinite(x) else f"{100 * x:.{digits}g} %"


def badge(word: str, tone: str) -> Html:
    return Html(f'<span class="badge {tone}">{html(word)}</span>')


def listed(items: Sequence[str]) -> Html:
    return Html('<ul class="plain">' + "".join(f"<li>{html(item)}</li>" for item in items) + "</ul>")


def facts(values: Sequence[tuple[str, str, str]]) -> Html:
    """Figures that matter most: title, figure, and what it means."""
    cells = (
        f"<div><dt>{html(title)}</dt><dd>{html(figure)}<small>{html(meaning)}</small></dd></div>"
        for title, figure, meaning in values
    )
    return Html(f'<dl class="facts">{"".join(cells)}</dl>')


def _is_text(cell: Cell) -> bool:
    return isinstance(cell, str | Named) or (isinstance(cell, Toned) and cell.value is None)


def _cell(cell: Cell) -> str:
    if isinstance(cell, Toned):
        exact = "" if cell.value is None else f' data-v="{cell.value!r}"'
        return f'<td class="tone {cell.tone}{" n" if exact else ""}"{exact}>{html(cell.text)}</td>'
    if isinstance(cell, Named):
        return f'<td data-v="{html(cell.meaning)}">{html(cell.name)}<small>{html(cell.meaning)}</small></td>'
    if isinstance(cell, str):
        kind = ' class="wide"' if len(cell) > 60 else ""
        return f"<td{kind}>{html(cell)}</td>"
    if cell is None:
        return '<td class="n" data-v="">–</td>'
    if isinstance(cell, int):
        return f'<td class="n">{cell}</td>'
    value = float(cell)
    if not math.isfinite(value):
        return '<td class="n" data-v="">–</td>'
    return f'<td class="n" data-v="{value!r}">{number(value)}</td>'


def table(columns: Sequence[str], rows: Sequence[Sequence[Cell]], caption: str = "", joints: bool = False) -> Html:
    """Text that can be selected and copied as CSV, every number with all its digits; a row a joint where said."""
    numeric = [bool(rows) and not any(_is_text(row[k]) for row in rows) for k in range(len(columns))]
    head = "".join(
        f'<th scope="col"{" class=n" if is_number else ""}>{html(column)}</th>'
        for column, is_number in zip(columns, numeric, strict=True)
    )
    body = "".join(
        f"<tr{f' data-joint={k}' if joints else ''}>{''.join(map(_cell, row))}</tr>" for k, row in enumerate(rows)
    )
    return Html(
        f'<div class="table"><div class="tools"><span>{html(caption)}</span>'
        '<button type="button" class="copy">Copy as CSV</button></div><div class="scroll" tabindex="0">'
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div></div>"
    )


def data(value: Any, name: str) -> Html:
    """JSON that stands in the page for its scripts; no text in it can end the element."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    safe = text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    return Html(f'<script type="application/json" id="{name}">{safe}</script>')


def fresh(kind: str) -> str:
    """A name that no other element of any page has."""
    return f"{kind}{next(_numbers)}"


def plot(
    figure: go.Figure, caption: str = "", *, key: str = "", under: str = "", scene: str = "", least: int = 0
) -> Html:
    """A figure that is drawn when it comes into view, with a key above and controls below.

    On a screen that is narrower than `least` pixels it is scrolled sideways.
    """
    name, height = fresh("plot"), int(figure.layout.height or 320)
    figure.update_layout(template="none")
    spec = json.loads(figure.to_json())
    more = f' data-scene="{scene}"' if scene else ""
    words = f"<figcaption>{html(caption)}</figcaption>" if caption else ""
    drawn = f'<div class="plot" style="--h:{height}px" data-spec="{name}"{more}></div>'
    if least:
        drawn = f'<div class="sideways" tabindex="0"><div style="min-width:{least}px">{drawn}</div></div>'
    return Html(f"<figure>{html(Html(key))}{drawn}{html(Html(under))}{words}</figure>{data(spec, name)}")


def key(items: Sequence[tuple[str, str, str]]) -> Html:
    """What colours mean: shape (line, box, dot), a CSS colour of ours, and the words."""
    spans = (
        f'<span><i class="{shape}" style="--c:{colour}"></i>{html(words)}</span>' for shape, colour, words in items
    )
    return Html(f'<div class="key">{"".join(spans)}</div>')


def tabs(panels: Mapping[str, str]) -> Html:
    """Panels of which one shows at a time; on paper all of them, one below the other."""
    names = {title: fresh("panel") for title in panels}
    buttons = "".join(
        f'<button type="button" role="tab" aria-selected="{str(k == 0).lower()}" tabindex="{0 if k == 0 else -1}" '
        f'aria-controls="{names[title]}">{html(title)}</button>'
        for k, title in enumerate(panels)
    )
    bodies = "".join(
        f'<div class="panel{" on" if k == 0 else ""}" role="tabpanel" id="{names[title]}">'
        f"<h3>{html(title)}</h3>{html(body)}</div>"
        for k, (title, body) in enumerate(panels.items())
    )
    return Html(f'<div class="tabs" role="tablist">{buttons}</div>{bodies}')


def section(name: str, title: str, *parts: str, lead: str = "") -> Html:
    """A card of the page, that the bar at its top leads to."""
    words = paragraph(lead, "lead") if lead else ""
    return Html(f'<section id="{name}"><h2>{html(title)}</h2>{words}{join(*parts)}</section>')
