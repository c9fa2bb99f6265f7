"""Render formulas as SVG, without scripts or fonts from other hosts."""

import re
from html import escape

import ziamath
from docutils import nodes
from sphinx.util import logging

logger = logging.getLogger(__name__)

SIZE = 18.0  # points; the page scales formulas to its font size
SCALE = 1.06 / SIZE  # em per point
# Use paths: symbols of several formulas on one page would clash.
ziamath.config.svg2 = False


def draw(node, *, inline):
    """Draw the LaTeX of a node.

    Parameters
    ----------
    node : docutils node
        Node whose text is LaTeX.

    inline : bool
        Whether the formula stands within a line.

    Returns
    -------
    html : str
        An SVG whose sizes are in em, or the LaTeX itself after a warning.
    """
    latex = " ".join(node.astext().split())
    try:
        formula = ziamath.Latex(latex, size=SIZE, inline=inline, color="currentColor")
        svg, below = formula.svg(), formula.getyofst()
    except Exception as error:  # any error of the parser
        logger.warning("cannot draw the formula %s: %s", latex, error, location=node)
        return f"<code>{escape(latex)}</code>"
    width, height = (
        float(re.search(rf'{side}="([\d.]+)"', svg).group(1)) * SCALE
        for side in ("width", "height")
    )
    style = f"width:{width:.3f}em;height:{height:.3f}em"
    if inline:
        style += f";vertical-align:{below * SCALE:.3f}em"
    label = escape(latex, quote=True)
    svg = re.sub(r' width="[\d.]+" height="[\d.]+"', "", svg, count=1)
    return svg.replace(
        "<svg ",
        f'<svg class="formula" role="img" aria-label="{label}" style="{style}" ',
        1,
    )


def visit_inline(self, node):
    """Write an inline formula; a word joiner keeps punctuation on its line."""
    self.body.append(draw(node, inline=True) + "&#8288;")
    raise nodes.SkipNode


def visit_block(self, node):
    """Write a displayed formula."""
    self.body.append(self.starttag(node, "div", CLASS="drawn-math"))
    self.body.append(draw(node, inline=False))
    self.body.append("</div>")
    raise nodes.SkipNode


def setup(app):
    """Register the renderer."""
    app.add_html_math_renderer("drawn", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
