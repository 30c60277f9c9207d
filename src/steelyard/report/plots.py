"""Interactive pictures as one self-contained HTML file."""

from pathlib import Path

import plotly.graph_objects as go

from ..files import whole_or_not

# Colours that stay apart for colour-blind eyes (Okabe and Ito), in light and dark.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#999999")
_STYLE = """
body { margin: 0 auto; max-width: 1200px; padding: 0 1rem; font: 16px/1.5 system-ui, sans-serif; color: #222; }
table { border-collapse: collapse; } td, th { padding: .15rem .8rem .15rem 0; text-align: left; }
@media (prefers-color-scheme: dark) { body { background: #16181c; color: #ddd; } }
"""
_DARK = """
const dark = matchMedia("(prefers-color-scheme: dark)");
function paint() {
  const ink = dark.matches ? "#ddd" : "#222", line = dark.matches ? "#333" : "#ddd";
  for (const plot of document.querySelectorAll(".js-plotly-plot")) {
    const change = {"paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)", "font.color": ink};
    for (const key of Object.keys(plot.layout)) if (/^[xy]axis/.test(key)) change[key + ".gridcolor"] = line;
    Plotly.relayout(plot, change);
  }
}
paint(); dark.addEventListener("change", paint);
"""


def colour(k: int) -> str:
    """The colour of joint k in every picture."""
    return COLOURS[k % len(COLOURS)]


def write_text(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    with whole_or_not(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def page(title: str, parts: list[str | go.Figure]) -> str:
    """An HTML page of text and figures that needs no network."""
    body, first = [], True
    for part in parts:
        if isinstance(part, str):
            body.append(part)
            continue
        config = {"responsive": True, "displaylogo": False}
        body.append(part.to_html(full_html=False, include_plotlyjs="inline" if first else False, config=config))
        first = False
    inner = "\n".join(body)
    return (
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{_STYLE}</style></head>'
        f"<body>{inner}<script>{_DARK}</script></body></html>"
    )
