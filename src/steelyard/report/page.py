"""The skeleton that all pages share: one HTML file that needs no network and cannot reach one."""

from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path

import plotly.offline

from ..files import whole_or_not
from .markup import Html, html, join
from .plots import colour

# Nothing may be fetched, whatever stands in the page; Plotly builds functions and styles as it draws.
_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; "
    "img-src data: blob:; font-src data:; worker-src blob:; base-uri 'none'; form-action 'none'"
)


def _asset(name: str) -> str:
    return files(__package__).joinpath("assets", name).read_text(encoding="utf-8")


def _bar(contents: Mapping[str, str], joints: Sequence[str]) -> str:
    links = "".join(f'<a href="#{name}">{html(title)}</a>' for name, title in contents.items())
    chips = "".join(
        f'<button type="button" class="chip" data-joint="{k}" aria-pressed="true" '
        f'style="--joint:{colour(k)}" title="{html(joint)}: click to hide, double-click to show it alone">'
        f"<i></i><span>{html(joint)}</span></button>"
        for k, joint in enumerate(joints)
    )
    row = f'<div class="chips" role="group" aria-label="Joints that are shown">{chips}</div>' if joints else ""
    return f'<div class="bar"><div><nav aria-label="Contents">{links}</nav>{row}</div></div>'


def page(
    title: str,
    body: Sequence[str],
    *,
    subtitle: str = "",
    contents: Mapping[str, str] | None = None,
    joints: Sequence[str] = (),
    foot: str = "",
    scripts: Sequence[str] = ("page.js",),
) -> Html:
    """A page of pieces made by `markup`, with a bar of links to its sections and of joints that can be hidden."""
    bar = _bar(contents or {}, joints) if contents or joints else ""
    code = "".join(f"<script>{_asset(name)}</script>" for name in scripts)
    return Html(
        '<!DOCTYPE html><html lang="en" data-theme="light"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<title>{html(title)}</title><link rel="icon" href="data:,"><style>{_asset("page.css")}</style></head><body>'
        f'<header class="top"><div><h1>{html(title)}</h1><p class="sub">{html(subtitle)}</p></div>'
        '<button type="button" class="theme" aria-label="Light or dark">Theme</button></header>'
        f"{bar}<main>{join(*body)}</main><footer>{html(foot)}</footer>"
        f"<script>{plotly.offline.get_plotlyjs()}</script>{code}</body></html>"
    )


def write_text(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    with whole_or_not(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
