"""Names and numbers as a person reads them."""

from __future__ import annotations

from typing import Any

# Letters of a name.
LONGEST_NAME = 24


def shorten(name: Any, longest: int = LONGEST_NAME) -> str:
    """Name on one line without what cannot be printed, cut in the middle if it is long.

    Names often differ at their ends alone.
    """
    text = " ".join(str(name).split())
    text = "".join(c if c.isprintable() else "?" for c in text)
    if len(text) <= longest:
        return text
    n_last = (longest - 1) // 3
    return f"{text[: longest - 1 - n_last]}…{text[len(text) - n_last :]}"


def label(name: Any, longest: int = LONGEST_NAME) -> str:
    """Short name that can be seen."""
    return shorten(name, longest) or "''"


def number(value: float) -> str:
    """Number with three digits that matter, or all before the point."""
    return f"{value:,.0f}" if 1000.0 <= abs(value) < 1e15 else f"{value:.3g}"


def count(n: float, noun: str, plural: str = "") -> str:
    """Number and noun: "1 latent", "2 latents"."""
    return f"{number(n)} {noun if n == 1 else plural or noun + 's'}"
