"""Parts of a page: escaped text, tables, pictures, and the page around them.

A page is one file without scripts that loads nothing, so that it can be mailed, kept
and opened anywhere.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

STYLE = """
:root { color-scheme: light dark; --ink: #1c2733; --quiet: #5a6672; --paper: #ffffff;
  --shade: #f2f5f8; --line: #d5dce3; --accent: #0b61a4; --bad: #b3261e; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6ebf0; --quiet: #a3afba; --paper: #14191f; --shade: #1d242c;
    --line: #37424d; --accent: #7cb8ec; --bad: #ff9d94; }
}
* { box-sizing: border-box; }
body { margin: 0; color: var(--ink); background: var(--paper); line-height: 1.5;
  font-family: system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
main, header, nav { max-width: 62rem; margin: 0 auto; padding: 0 1rem;
  overflow-wrap: anywhere; }
header { padding-top: 1.5rem; }
h1 { font-size: 1.6rem; line-height: 1.2; margin: 0; }
h2 { font-size: 1.25rem; margin: 2.2rem 0 0.6rem; padding-top: 0.6rem;
  border-top: 1px solid var(--line); }
h3 { font-size: 1.05rem; margin: 1.4rem 0 0.4rem; }
header p, .note { color: var(--quiet); margin: 0.3rem 0; }
nav ul { display: flex; flex-wrap: wrap; gap: 0.3rem 1.2rem; list-style: none;
  padding: 0; margin: 1rem 0 0; }
a { color: var(--accent); }
.wide { overflow-x: auto; max-width: 100%; }
table { border-collapse: collapse; font-size: 0.9rem; }
th, td { padding: 0.25rem 0.7rem; text-align: left; vertical-align: top;
  border-bottom: 1px solid var(--line); max-width: 24rem; overflow-wrap: break-word; }
thead th { background: var(--shade); white-space: nowrap; }
td.number { text-align: right; font-variant-numeric: tabular-nums;
  white-space: nowrap; }
td:not(.number) { min-width: 6rem; }
tr.bad td { color: var(--bad); }
summary { cursor: pointer; margin: 0.4rem 0; }
figure { margin: 0.6rem 0; }
figure img { display: block; width: 100%; height: auto; background: #ffffff;
  border-radius: 6px; }
figcaption { color: var(--quiet); font-size: 0.9rem; margin-top: 0.3rem; }
pre { background: var(--shade); padding: 0.8rem; border-radius: 6px; overflow-x: auto; }
footer { color: var(--quiet); font-size: 0.85rem; margin: 2.5rem 0 1.5rem; }
""".strip()


class Section(NamedTuple):
    """A part of a page: its heading, and HTML below it."""

    title: str
    body: str


def paragraph(text: str, kind: str = "") -> str:
    """A paragraph of plain text."""
    return f"<p{_class(kind)}>{escape(text)}</p>"


def table(header: Sequence[str], rows: Iterable[Sequence], bad=()) -> str:
    """A table that scrolls by itself where it is too wide.

    Numbers are rounded and stand on the right; rows whose numbers are in `bad` stand
    out.
    """
    head = "".join(f'<th scope="col">{escape(str(name))}</th>' for name in header)
    body = "".join(
        f"<tr{_class('bad' if i in bad else '')}>{''.join(map(_cell, row))}</tr>\n"
        for i, row in enumerate(rows)
    )
    return (
        '<div class="wide" tabindex="0"><table>'
        f"<thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table></div>"
    )


def folded(title: str, body: str) -> str:
    """What is shown after a click on its title."""
    return f"<details><summary>{escape(title)}</summary>{body}</details>"


def picture(svg: bytes, text: str) -> str:
    """A drawing, with its words for those who cannot see it."""
    data = base64.b64encode(svg).decode("ascii")
    alt = escape(text, quote=True)
    return (
        f'<figure><img src="data:image/svg+xml;base64,{data}" alt="{alt}">'
        f"<figcaption>{escape(text)}</figcaption></figure>"
    )


def chapter(sections: Iterable[Section]) -> str:
    """Sections below one heading."""
    return "".join(f"<h3>{escape(part.title)}</h3>\n{part.body}\n" for part in sections)


def page(title: str, subtitle: str, sections: Sequence[Section], footer: str) -> str:
    """The whole file."""
    links = "".join(
        f'<li><a href="#section{i}">{escape(part.title)}</a></li>'
        for i, part in enumerate(sections)
    )
    body = "\n".join(
        f'<section id="section{i}"><h2>{escape(part.title)}</h2>\n{part.body}\n'
        "</section>"
        for i, part in enumerate(sections)
    )
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>{escape(title)}</title>
<style>
{STYLE}
</style>
</head>
<body>
<header><h1>{escape(title)}</h1>
{paragraph(subtitle)}
</header>
<nav aria-label="Sections"><ul>{links}</ul></nav>
<main>
{body}
<footer>{escape(footer)}</footer>
</main>
</body>
</html>
"""


def _cell(value) -> str:
    """A cell; numbers are set apart from text."""
    if isinstance(value, bool):
        value = "yes" if value else "no"
    if isinstance(value, int):
        return f'<td class="number">{value:,}</td>'
    if isinstance(value, float):
        return f'<td class="number">{value:.3g}</td>'
    return f"<td>{escape(str(value))}</td>"


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""
