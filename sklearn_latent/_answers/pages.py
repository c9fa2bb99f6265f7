"""Pages of text and of HTML: sections, lines and tables.

A page of HTML is one file without scripts that loads nothing, so that it can be mailed,
kept and opened anywhere.
"""

from __future__ import annotations

import base64
import textwrap
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any, NamedTuple

WIDTH = 80

STYLE = """
:root { color-scheme: light dark; --ink: #1c2733; --quiet: #5a6672; --paper: #ffffff;
  --shade: #f2f5f8; --line: #d5dce3; --accent: #0b61a4; --bad: #b3261e; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6ebf0; --quiet: #a3afba; --paper: #14191f; --shade: #1d242c;
    --line: #37424d; --accent: #7cb8ec; --bad: #ff9d94; }
}
body { margin: 0; color: var(--ink); background: var(--paper); line-height: 1.5;
  font-family: system-ui, sans-serif; }
main, header, nav { max-width: 62rem; margin: 0 auto; padding: 0 1rem;
  overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; margin: 1.5rem 0 0; }
h2 { font-size: 1.25rem; margin-top: 2.2rem; border-top: 1px solid var(--line); }
header p, .note, figcaption, footer { color: var(--quiet); }
nav ul { display: flex; flex-wrap: wrap; gap: 0.3rem 1.2rem; list-style: none;
  padding: 0; }
a { color: var(--accent); }
table { border-collapse: collapse; font-size: 0.9rem; }
th, td { padding: 0.25rem 0.7rem; vertical-align: top; max-width: 24rem;
  border-bottom: 1px solid var(--line); }
thead th { background: var(--shade); white-space: nowrap; }
td.number { text-align: right; white-space: nowrap; }
tr.bad td { color: var(--bad); }
summary { cursor: pointer; }
figure { margin: 0.6rem 0; }
figure img { display: block; width: 100%; background: #ffffff; }
""".strip()


class Section(NamedTuple):
    """A part of a page of text.

    lines: paragraphs, or items of a list if `listed`
    header, rows: a table below them, of text; the last column may be long
    """

    title: str
    lines: Sequence[str] = ()
    header: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    listed: bool = False


class Chapter(NamedTuple):
    """A part of a page of HTML."""

    title: str
    body: str


class Summary(str):
    """Text of a summary, of which notebooks show HTML.

    Attributes
    ----------
    heading : str
        The first line.
    sections : tuple of Section
        Parts, each with a title, lines and perhaps a table.
    """

    heading: str
    sections: tuple[Section, ...]

    def __new__(cls, title: str, sections: Iterable[Section]) -> Summary:
        sections = tuple(sections)
        text = "\n\n".join([_underlined(title, "="), *map(_as_text, sections)])
        summary = super().__new__(cls, text)
        summary.heading, summary.sections = title, sections
        return summary

    def __getnewargs__(self) -> Any:
        return self.heading, self.sections

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        """The same as a fragment of HTML, without scripts or outside requests."""
        parts = "".join(map(section_html, self.sections))
        label = escape(self.heading)
        return f'<section aria-label="{label}"><h3>{label}</h3>{parts}</section>'


def _underlined(title: str, mark: str) -> str:
    lines = textwrap.wrap(title, WIDTH)
    return "\n".join([*lines, mark * max(map(len, lines), default=0)])


def _as_text(section: Section) -> str:
    """Title, wrapped lines and table of a section."""
    bullet, indent = ("- ", "  ") if section.listed else ("", "")
    lines = [
        textwrap.fill(line, WIDTH, initial_indent=bullet, subsequent_indent=indent)
        for line in section.lines
    ]
    table = _table_lines([section.header, *section.rows]) if section.rows else []
    return "\n".join([_underlined(section.title, "-"), *lines, *table])


def _table_lines(rows: Sequence[Sequence[str]]) -> list[str]:
    """Columns side by side; the last one is wrapped."""
    fixed = [max(len(row[place]) for row in rows) for place in range(len(rows[0]) - 1)]
    start = sum(fixed) + 2 * len(fixed)
    lines = []
    for row in rows:
        cells = [f"{c:<{w}}  " for c, w in zip(row, fixed, strict=False)]
        last = textwrap.wrap(row[-1], max(WIDTH - start, 20)) or [""]
        lines.append(("".join(cells) + last[0]).rstrip())
        lines += [" " * start + more for more in last[1:]]
    return lines


def section_html(section: Section, level: int = 4) -> str:
    """Heading of a level, list or paragraphs, and table of a section."""
    tag, around = ("li", "ul") if section.listed else ("p", "div")
    lines = "".join(f"<{tag}>{escape(line)}</{tag}>" for line in section.lines)
    body = f"<{around}>{lines}</{around}>"
    if section.rows:
        body += table(section.header, section.rows)
    return f"<h{level}>{escape(section.title)}</h{level}>{body}"


def paragraph(text: str, kind: str = "") -> str:
    """A paragraph of plain text."""
    return f"<p{_class(kind)}>{escape(text)}</p>"


def table(header: Sequence[str], rows: Iterable[Sequence], bad: Any = ()) -> str:
    """A table that scrolls by itself where it is too wide, not the page.

    Numbers are rounded; rows whose numbers are in `bad` stand out.
    """
    # Cell by cell, since notebooks align the cells of tables to the right.
    head = "".join(
        f'<th scope="col" style="text-align: left">{escape(str(name))}</th>'
        for name in header
    )
    body = "".join(
        f"<tr{_class('bad' if i in bad else '')}>{''.join(map(_cell, row))}</tr>\n"
        for i, row in enumerate(rows)
    )
    return (
        '<div style="overflow-x: auto" tabindex="0"><table>'
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


def page(title: str, subtitle: str, chapters: Sequence[Chapter], footer: str) -> str:
    """The whole file."""
    links = "".join(
        f'<li><a href="#section{i}">{escape(part.title)}</a></li>'
        for i, part in enumerate(chapters)
    )
    body = "\n".join(
        f'<section id="section{i}"><h2>{escape(part.title)}</h2>\n{part.body}\n'
        "</section>"
        for i, part in enumerate(chapters)
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


def _cell(value: Any) -> str:
    """A cell; numbers are set apart from text."""
    if isinstance(value, bool):
        value = "yes" if value else "no"
    if isinstance(value, int):
        return f'<td class="number">{value:,}</td>'
    if isinstance(value, float):
        return f'<td class="number">{value:.3g}</td>'
    return f'<td style="text-align: left">{escape(str(value))}</td>'


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""
