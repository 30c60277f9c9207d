"""What all figures share: colours, axes, and long signals drawn as envelopes."""

import base64
from html import escape
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

# Colours that stay apart for colour-blind eyes (Okabe and Ito; their yellow darkened), in light and dark.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#B3A100", "#999999")
DASHES = ("solid", "dash", "dot", "dashdot")
MEASURED = "neutral"  # the colour of what was measured, from the page's own


def colour(k: int) -> str:
    """The colour of joint k in every picture."""
    return COLOURS[k % len(COLOURS)]


def dash(k: int) -> str:
    """The dashes of joint k, which tell it from the one that has the same colour."""
    return DASHES[(k // len(COLOURS)) % len(DASHES)]


def label(text: str, most: int = 40) -> str:
    """A name for a figure, where Plotly would read tags."""
    return escape(text if len(text) <= most else text[: most - 1] + "…", quote=False)


def styled(figure: go.Figure, height: int, **margin: int) -> go.Figure:
    """A figure as all are: no frame of its own, the page's fonts, room for its labels only."""
    figure.update_layout(
        template="none",
        height=height,
        margin={"l": 58, "r": 14, "t": 22, "b": 46} | margin,
        font={"family": "system-ui, Segoe UI, Roboto, Noto Sans, sans-serif", "size": 12.5},
        showlegend=False,
        hovermode="closest",
    )
    figure.update_xaxes(
        automargin=True, ticks="outside", ticklen=4, zeroline=False, title_standoff=8, title_font_size=12.5
    )
    figure.update_yaxes(automargin=True, zeroline=True, title_standoff=8, title_font_size=12.5)
    figure.update_annotations(font_size=12.5)
    return figure


def packed(values: ArrayLike) -> dict[str, str]:
    """Numbers in single precision as the page's scripts and Plotly read them."""
    return {"dtype": "f4", "bdata": base64.b64encode(np.asarray(values, dtype="<f4").tobytes()).decode()}


def envelope_edges(count: int, most: int) -> tuple[int, int]:
    """Rows a piece, and pieces, so that two values a piece are not more than `most`; one row a piece: all are kept."""
    if count <= most:
        return 1, count
    size = int(np.ceil(2 * count / most))
    return size, int(np.ceil(count / size))


def envelope(values: Array, most: int) -> NDArray[np.float32]:
    """Lowest and highest value of every piece, in the order in which they came; all values where they are few enough.

    What is not finite is left out; a piece of nothing else is NaN.
    """
    size, pieces = envelope_edges(len(values), most)
    if size == 1:
        return np.where(np.isfinite(values), values, np.nan).astype(np.float32)
    padded = np.full(pieces * size, np.nan)
    padded[: len(values)] = values
    rows = padded.reshape(pieces, size)
    known = np.isfinite(rows)
    low, high = np.where(known, rows, np.inf), np.where(known, rows, -np.inf)
    first, last = low.argmin(axis=1), high.argmax(axis=1)
    k = np.arange(pieces)
    both = np.stack([low[k, first], high[k, last]], axis=1)
    both = np.where((first <= last)[:, None], both, both[:, ::-1])
    return np.where(known.any(axis=1)[:, None], both, np.nan).ravel().astype(np.float32)


def envelope_times(t: Array, most: int) -> Array:
    """The times that `envelope` has values at: a quarter and three quarters into each piece."""
    size, pieces = envelope_edges(len(t), most)
    if size == 1:
        return t
    first = np.arange(pieces) * size
    last = np.minimum(first + size, len(t)) - 1
    span = t[last] - t[first]
    return np.stack([t[first] + 0.25 * span, t[first] + 0.75 * span], axis=1).ravel()


def long_line(x: str, y: NDArray[np.float32], name: str, joint: int | None = None, **style: Any) -> go.Scatter:
    """A line whose abscissae stand once in the page under the name `x`, thinned again whenever it is zoomed."""
    meta = {"x": x} | ({} if joint is None else {"joint": joint})
    ink = style.pop("ink", None)
    line = go.Scatter(y=[], name=label(name), mode="lines", line=style, meta=meta | ({"ink": ink} if ink else {}))
    line.y = np.ascontiguousarray(y)
    line.hovertemplate = "%{y:.4g}"
    return line
