"""Draw the three icons of the landing page, one per kind of table."""

import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
LATENT, FEATURE = "#6A51A3", "#4D4D4D"
STATES = ("#0072B2", "#E69F00", "#009E73")


def rectangle(x, y, width, height, fill):
    """A cell."""
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" '
        f'rx="2" fill="{fill}"/>'
    )


def line(x1, y1, x2, y2):
    """An edge."""
    return (
        f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="{LATENT}" '
        'stroke-width="2" stroke-opacity="0.55"/>'
    )


def node(x, y):
    """A latent."""
    return f'<circle cx="{x:g}" cy="{y:g}" r="9" fill="{LATENT}"/>'


def yes_no():
    """Cells that are on or off, with latents above them."""
    on = np.random.RandomState(3).uniform(size=(4, 8)) < 0.4
    parts = []
    for x, columns in ((62, (0, 1, 2, 3)), (158, (3, 4, 5, 6, 7))):
        parts += [line(x, 24, 23 + 25 * j, 62) for j in columns]
        parts.append(node(x, 20))
    for i in range(4):
        for j in range(8):
            fill = FEATURE if on[i, j] else "#E6E6E6"
            parts.append(rectangle(12 + 25 * j, 62 + 16 * i, 21, 12, fill))
    return parts


def measurements():
    """Curves that move together, with a latent above them."""
    t = np.linspace(0, 1, 40)
    parts = [line(110, 24, 60, 60), line(110, 24, 160, 60), node(110, 20)]
    for k, color in enumerate(STATES):
        y = 92 - 15 * np.sin(5 * t + 0.3 * k) * (1 if k < 2 else -0.8) + 5 * k
        points = " ".join(
            f"{12 + 196 * a:.1f},{b:.1f}" for a, b in zip(t, y, strict=True)
        )
        parts.append(
            f'<polyline points="{points}" fill="none" stroke="{color}" '
            'stroke-width="2.5"/>'
        )
    return parts


def categories():
    """Answers at several visits, with latent states above them."""
    states = [0, 0, 1, 1, 2]
    rng = np.random.RandomState(1)
    parts = []
    for t, state in enumerate(states):
        x = 30 + 40 * t
        if t:
            parts.append(line(x - 31, 20, x - 9, 20))
        parts += [line(x, 20, x, 60), node(x, 20)]
        for i in range(3):
            shown = state if rng.uniform() < 0.75 else rng.randint(3)
            parts.append(rectangle(x - 14, 60 + 20 * i, 28, 16, STATES[shown]))
    return parts


def write(folder):
    """Write the icons as SVG files."""
    for name, draw in (
        ("yes_no", yes_no),
        ("measurements", measurements),
        ("categories", categories),
    ):
        body = "\n".join(draw())
        (folder / f"{name}.svg").write_text(
            '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 220 130" '
            f'role="img">\n{body}\n</svg>\n',
            encoding="utf-8",
        )


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "_static")
