"""What is left of the torque: its spectrum, its distribution, and whether it remembers."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from ..data.spectrum import MIN_ROWS
from .markup import Cell, Html, plot, section, table, tabs
from .plots import colour, dash, label, styled
from .subject import Piece, Subject, judged

Array = NDArray[np.float64]
_BINS = 81
_LAGS = 200
# Values a line of a spectrum; what lies closer is averaged over bands of equal width on the logarithmic axis.
_BANDS = 400
# A spectrum of so many rows is as good as that of more.
_ENOUGH = 400_000


def _spectrum(pieces: Sequence[Piece], j: int) -> tuple[Array, Array] | None:
    """Welch's power density of the longest piece, rows that do not count at zero."""
    from scipy.signal import welch

    longest = max(pieces, key=lambda piece: len(piece.t))
    e = longest.residual[:_ENOUGH, j]
    if len(e) < MIN_ROWS:
        return None
    known = np.isfinite(e)
    if known.mean() < 0.1:
        return None
    rate = longest.recording.rate_hz
    e = np.where(known, e - np.nanmean(e), 0.0)
    f, power = welch(e, rate, nperseg=int(min(len(e), max(256, len(e) // 8))), detrend="constant")
    f, power = f[1:], power[1:] / known.mean()
    if len(f) <= _BANDS:
        return f, power
    edges = np.unique(np.searchsorted(f, np.geomspace(f[0], f[-1], _BANDS)))
    counts = np.diff(np.append(edges, len(f)))
    return np.add.reduceat(f, edges) / counts, np.add.reduceat(power, edges) / counts


def _values(pieces: Sequence[Piece], j: int) -> Array:
    e = np.concatenate([piece.residual[:, j] for piece in pieces])
    return np.asarray(e[np.isfinite(e)])


def autocorrelation(e: Array, lags: int) -> Array:
    """Of a series in which NaN does not count: the mean product at each lag over the mean square."""
    known = np.isfinite(e)
    x = np.where(known, e - np.nanmean(e), 0.0)
    size = 1 << int(np.ceil(np.log2(len(x) + lags + 1)))
    products = np.fft.irfft(np.abs(np.fft.rfft(x, size)) ** 2, size)[: lags + 1]
    pairs = np.fft.irfft(np.abs(np.fft.rfft(known.astype(float), size)) ** 2, size)[: lags + 1]
    mean = products / np.maximum(np.round(pairs), 1.0)
    return np.asarray(mean / mean[0]) if mean[0] > 0 else np.zeros(lags + 1)


def _line(x: Array, y: Array, name: str, j: int) -> go.Scatter:
    line = go.Scatter(
        mode="lines", name=label(name), meta={"joint": j}, line={"color": colour(j), "dash": dash(j), "width": 1.5}
    )
    return line.update(x=np.asarray(x, dtype=np.float32), y=np.asarray(y, dtype=np.float32))


def _spectra(subject: Subject, pieces: Sequence[Piece]) -> go.Figure | None:
    figure = go.Figure()
    for j, dof in enumerate(subject.robot.dof_names):
        found = _spectrum(pieces, j)
        if found is not None:
            figure.add_trace(_line(*found, dof, j))
    if not figure.data:
        return None
    styled(figure, 380)
    figure.update_xaxes(type="log", title_text="frequency / Hz", exponentformat="power")
    figure.update_yaxes(type="log", title_text="power density / (N·m)²/Hz", exponentformat="power")
    return figure


def _histograms(subject: Subject, pieces: Sequence[Piece]) -> go.Figure:
    """Residuals in standard deviations of their joint, beside the normal distribution."""
    figure, edges = go.Figure(), np.linspace(-5.0, 5.0, _BINS + 1)
    middle = 0.5 * (edges[1:] + edges[:-1])
    for j, dof in enumerate(subject.robot.dof_names):
        e = _values(pieces, j)
        spread = float(e.std()) if len(e) else 0.0
        if spread > 0:
            counts = np.histogram((e - e.mean()) / spread, edges)[0]
            figure.add_trace(_line(middle, counts / (len(e) * (edges[1] - edges[0])), dof, j))
    normal = go.Scatter(
        x=middle, y=np.exp(-0.5 * middle**2) / np.sqrt(2 * np.pi), name="normal", mode="lines",
        line={"width": 3, "dash": "dot"}, meta={"ink": "neutral"},
    )  # fmt: skip
    figure.add_trace(normal)
    styled(figure, 380)
    figure.update_xaxes(title_text="residual / its standard deviation")
    figure.update_yaxes(title_text="density", rangemode="tozero")
    return figure


def _autocorrelations(subject: Subject, pieces: Sequence[Piece]) -> go.Figure:
    longest = max(pieces, key=lambda piece: len(piece.t))
    lags = min(_LAGS, max(1, len(longest.t) // 4))
    figure = go.Figure()
    for j, dof in enumerate(subject.robot.dof_names):
        e = longest.residual[:_ENOUGH, j]
        if np.isfinite(e).sum() > 2:
            figure.add_trace(_line(np.arange(lags + 1.0), autocorrelation(e, lags), dof, j))
    bound = 1.96 / np.sqrt(max(1, len(longest.t)))
    figure.add_hrect(y0=-bound, y1=bound, fillcolor="rgba(139,147,156,0.28)", line_width=0, layer="below")
    styled(figure, 380)
    figure.update_xaxes(title_text=f"lag / rows of {longest.recording.rate_hz:.4g} Hz")
    figure.update_yaxes(title_text="autocorrelation", range=[-0.6, 1.05])
    return figure


def _moments(subject: Subject, pieces: Sequence[Piece]) -> Html:
    from scipy.stats import kurtosis

    rows: list[tuple[Cell, ...]] = []
    for j, dof in enumerate(subject.robot.dof_names):
        e = _values(pieces, j)
        if len(e) < 3:
            rows.append((dof, len(e), None, None, None, None))
            continue
        spread = float(e.std())
        tails = float(kurtosis(e)) if spread > 0 else float("nan")
        rows.append((dof, len(e), float(e.mean()), spread, float(np.abs(e).max()), tails))
    columns = ("joint", "rows that count", "mean", "standard deviation", "largest", "excess kurtosis")
    return table(columns, rows, "residuals, N·m (N where a joint slides)", joints=True)


def residual_section(subject: Subject, pieces: Sequence[Piece]) -> Html:
    """Residuals of the best method on what it has not seen, where something was held out."""
    some, words = judged(pieces)
    panels: dict[str, str] = {}
    spectra = _spectra(subject, some)
    if spectra is not None:
        panels["Spectra"] = plot(
            spectra, "White noise is flat. What stands out is motion that the model does not explain, or a resonance."
        )
    panels["Histograms"] = plot(
        _histograms(subject, some), "Each joint in units of its own spread; dotted: the normal distribution."
    )
    panels["Autocorrelation"] = plot(
        _autocorrelations(subject, some),
        "Residuals that are white stay in the grey band 19 times out of 20. Those that remember make naive intervals "
        "too short; the intervals on this page take it into account.",
    )
    panels["Figures"] = _moments(subject, some)
    return section("residuals", "Residuals", tabs(panels), lead=f"Measured less predicted torque, on {words}.")
