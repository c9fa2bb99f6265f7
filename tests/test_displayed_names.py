"""Names and values look in every picture and text as the user wrote them."""

import warnings
from functools import cache

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from html_pages import Page
from matplotlib.cbook import is_math_text
from matplotlib.text import Text

from sklearn_latent import IdealParentGaussianBN, LGLPCCTemporal, NoisyOrEM
from sklearn_latent._core.text import label, shorten
from sklearn_latent.datasets import make_latent_dbn, make_noisy_or
from sklearn_latent.plotting import (
    ExplanationDisplay,
    FitDisplay,
    LatentGraphDisplay,
    LatentImagesDisplay,
    TrajectoryDisplay,
)

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn_latent.exceptions.LatentWarning",
    # Matplotlib on letters that its font lacks, such as emoji.
    "ignore:Glyph:UserWarning",
)

LISTS = [
    ["a$b$c", r"x_{1}", r"\alpha", "<b>", "&amp;"],
    ["$$", r"\$", r"$\frac{1}{", "%s%(x)s", "\"'`"],
    ["two\nlines", "😀", "\x1b[31m", "q" * 2000, "x = $y$"],
    ["_x", "#35;|", "שלום", "---", "{0}"],
]
NAMES = pytest.mark.parametrize("names", LISTS, ids=[0, 1, 2, 3])
N = 5
# Titles of explanations go on with a state.
ENDS = ["", *(f", state {k}, slice 1" for k in range(N))]


@cache
def fitted(kind, number):
    """A model whose columns and latents have these names, and its rows."""
    names = LISTS[number]
    if kind == "gaussian":
        rng = np.random.default_rng(0)
        X = rng.normal(size=(200, 1)) + 0.5 * rng.normal(size=(200, N))
        X = pd.DataFrame(X, columns=names)
        model = IdealParentGaussianBN(max_latents=1)
    elif kind == "panel":
        X = make_latent_dbn("G1", 100, 2, random_state=0).X
        X = np.asarray(X).reshape(100, -1).astype(int)
        # Values are names, too.
        columns = [f"{name}{t}" for t in "ab" for name in names[:3]]
        X = pd.DataFrame(np.array(names, dtype=object)[X], columns=columns)
        model = LGLPCCTemporal(2, random_state=0)
    else:
        X = pd.DataFrame(make_noisy_or(n_samples=300, random_state=0).X, columns=names)
        model = NoisyOrEM(2, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X)
    return model.rename_latents(names[: model.n_latents_]), X


# Displays by themselves show all names that they are given.
GIVEN = {
    "ExplanationDisplay": lambda n: ExplanationDisplay(
        np.ones(N), [f"{name} = {name}" for name in n], title=n[0]
    ),
    "FitDisplay": lambda n: FitDisplay(
        pd.DataFrame(
            {"check": n, "what": n, "observed": 1.0, "expected": np.arange(N)}
            | {"z": 9.0, "ok": False}
        ).assign(check="rate")
    ),
    "LatentImagesDisplay": lambda n: LatentImagesDisplay(np.eye(N, 4), (2, 2), n),
    "bars": lambda n: TrajectoryDisplay([np.full((N, N, 2), 0.5)], n[:1], n, n),
    "rows": lambda n: TrajectoryDisplay([np.full((9, 2, 2), 0.5)] * N, n),
}


def drawn(display):
    """Texts of a picture, as a reader sees them."""
    figure = display.figure_
    figure.set_size_inches(16, 9)
    figure.canvas.draw()
    texts = [text.get_text() for text in figure.findobj(Text) if text.get_visible()]
    plt.close(figure)
    assert not any(map(is_math_text, texts))
    return [" ".join(text.replace(r"\$", "$").split()) for text in texts]


def check_shown(texts, names):
    for name in names:
        # Narrow panels cut names; what is left of them is from both ends.
        assert any(shorten(name) in text for text in texts) or any(
            text.partition("…")[0] and name.startswith(text.partition("…")[0])
            for text in texts
            if "…" in text
        ), name


@NAMES
@pytest.mark.parametrize("kind", GIVEN)
def test_given_names(kind, names):
    check_shown(drawn(GIVEN[kind](names).plot()), names)


@pytest.mark.parametrize("number", range(len(LISTS)))
@pytest.mark.parametrize("kind", ["noisy-or", "gaussian", "panel"])
class TestModels:
    def test_pictures(self, kind, number):
        model, X = fitted(kind, number)
        names = LISTS[number][: 3 if kind == "panel" else N]
        texts = drawn(LatentGraphDisplay.from_estimator(model))
        check_shown(texts, names)
        explanation = model.explain(X.iloc[:1])
        texts = drawn(explanation.plot())
        assert set(texts) & {f"{label(name)}{end}" for name in names for end in ENDS}
        if kind == "panel":  # values are names, too
            ends = tuple(f" = {label(name)}" for name in LISTS[number])
            assert sum(text.endswith(ends) for text in texts) > 1
        drawn(FitDisplay.from_estimator(model, X, n_labels=20))

    def test_words(self, kind, number):
        model, X = fitted(kind, number)
        explanation = model.explain(X.iloc[:1])
        text = str(explanation)
        assert text.isprintable() or text.count("\n") == len(text.splitlines()) - 1
        for name in explanation.latent_names:
            assert f"{label(name)}" in text
        assert set(explanation.to_frame().latent) <= set(LISTS[number])
        for source in (model.to_dot(), model.to_mermaid()):
            assert source.replace("\n", "").isprintable()

    def test_pages(self, kind, number, tmp_path):
        model, X = fitted(kind, number)
        model.report(tmp_path / "report.html", X)
        page = Page((tmp_path / "report.html").read_text(encoding="utf-8"))
        for name in X.columns[: 3 if kind == "panel" else N]:
            assert " ".join(name.split()) in page.text
        summary = model.summary(X)
        assert max(map(len, summary.splitlines())) <= 80
        shown = Page(summary._repr_html_())
        for name in model.latent_names_:
            assert label(name) in shown.text
        assert "b" not in {*page.tags, *shown.tags}
