"""Reports: one file that needs nothing else, whatever the names and the model."""

import html
import re
import shutil
import subprocess
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import polars as pl
import pytest
from html_pages import Page
from scipy import sparse
from sklearn.exceptions import NotFittedError

from sklearn_latent import (
    LPCC,
    IdealParentGaussianBN,
    LGLPCCTemporal,
    NoisyOrEM,
    NoisyOrMoMLearner,
    report,
    sequences_from_frame,
)
from sklearn_latent._answers.report import columns_of, describe
from sklearn_latent.datasets import make_gaussian_bn, make_latent_dbn, make_noisy_or

HOSTILE = ["<script>alert(1)</script>", 'a"b', "a&b", "x\ny", "é→…", "'onload="]
STRUCTURE = [[1, 1, 1, 0, 0, 0], [0, 0, 1, 1, 1, 1]]


def page_of(path) -> Page:
    return Page(Path(path).read_text(encoding="utf-8"))


@pytest.fixture(autouse=True)
def _no_figures_left():
    plt.close("all")
    yield
    assert not plt.get_fignums()


@pytest.fixture(scope="module")
def patients():
    X = make_noisy_or(STRUCTURE, 500, random_state=0).X
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d", "e", "f"])
    return NoisyOrMoMLearner(STRUCTURE).fit(frame), frame


def gaussian():
    X = make_gaussian_bn(
        n_features=6, n_latents=1, bipartite=True, n_samples=200, random_state=0
    ).X
    return IdealParentGaussianBN(max_latents=1, bipartite=True).fit(X), X


def table():
    X = make_latent_dbn("G1", 200, 1, random_state=0).X
    return LPCC(random_state=0).fit(X), X


def panel():
    X = make_latent_dbn("G1", 200, 3, random_state=0).X
    return LGLPCCTemporal(3, random_state=0).fit(X), X


@pytest.mark.parametrize("make", [gaussian, table, panel])
def test_every_family_has_a_report(make, tmp_path):
    model, X = make()
    model.report(tmp_path / "report.html", X)
    page = page_of(tmp_path / "report.html")
    text = " ".join(page.words)
    for part in ("Summary", "Graph", "Edges", "Diagnosis", "Data", "checks listed"):
        assert part in text
    for name in [*model.latent_names_, *model._node_names()]:
        assert str(name) in text


def test_page_loads_nothing_and_runs_nothing(patients, tmp_path):
    model, X = patients
    model.report(str(tmp_path / "report.html"), X)
    page = page_of(tmp_path / "report.html")
    assert "script" not in page.tags and "iframe" not in page.tags
    assert all(place.startswith(("data:", "#")) for place in page.loads)
    targets = {place[1:] for place in page.loads if place.startswith("#")}
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert targets <= set(re.findall(r'id="([^"]+)"', text))
    assert "http" not in re.sub(r"base64,[^\"]+", "", text)


def test_names_are_text_and_not_markup(tmp_path):
    X = make_noisy_or(STRUCTURE, 300, random_state=0).X
    model = NoisyOrEM(structure=STRUCTURE, random_state=0)
    frame = pd.DataFrame(X, columns=HOSTILE)
    model.fit(frame).rename_latents(["<b>flu", "</section>"])
    model.report(tmp_path / "report.html", frame, title="<i>mine</i>")
    page = page_of(tmp_path / "report.html")
    assert "script" not in page.tags and "b" not in page.tags and "i" not in page.tags
    text = html.unescape(" ".join(page.words))
    assert "<script>alert(1)</script>" in text and "<b>flu" in text
    assert "<i>mine</i>" in text


def test_same_model_same_page(patients, tmp_path):
    model, X = patients
    for name in ("one", "two"):
        model.report(tmp_path / name, X)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_without_rows_the_page_says_what_is_missing(patients, tmp_path):
    patients[0].report(tmp_path / "report.html")
    text = " ".join(page_of(tmp_path / "report.html").words)
    assert "report(path, X)" in text and "checks listed" not in text


def test_several_models_share_a_page(patients, tmp_path):
    models = {"Patients": patients, "Numbers": gaussian()[0]}
    report(models, tmp_path / "report.html", title="Both")
    text = " ".join(page_of(tmp_path / "report.html").words)
    assert "2 models" in text and "Patients" in text and "Numbers" in text


def test_wrong_arguments_are_named(patients, tmp_path):
    model, X = patients
    with pytest.raises(NotFittedError):
        NoisyOrEM().report(tmp_path / "report.html")
    with pytest.raises(ValueError, match="feature names"):
        model.report(tmp_path / "report.html", X.iloc[:, :3])
    with pytest.raises(TypeError, match="path"):
        model.report(3.5)
    with pytest.raises(TypeError, match="title"):
        model.report(tmp_path / "report.html", title=3)
    with pytest.raises(TypeError, match="iterator"):
        model.report(tmp_path / "report.html", iter([X]))
    with pytest.raises(TypeError, match="models"):
        report([model], tmp_path / "report.html")
    with pytest.raises(TypeError, match="models"):
        report({"a": 3}, tmp_path / "report.html")
    with pytest.raises(ValueError, match="models"):
        report({}, tmp_path / "report.html")
    # What cannot be written leaves no half of a page.
    assert not list(tmp_path.iterdir())


def test_long_table_is_described_by_feature(tmp_path):
    data = make_latent_dbn("G1", 100, 3, random_state=0)
    values = data.X.reshape(100, 3, 3)
    frame = pd.DataFrame(
        {
            "id": np.repeat(np.arange(100), 3),
            "visit": np.tile([0, 1, 2], 100),
            **{name: values[:, :, j].ravel() for j, name in enumerate(["p", "q", "r"])},
        }
    )
    X = sequences_from_frame(frame, sequence="id", time="visit")
    model = LGLPCCTemporal(3, random_state=0).fit(X)
    for rows, name in ((X, "array"), (frame, "frame")):
        model.report(tmp_path / name, rows)
    assert (tmp_path / "array").read_bytes() == (tmp_path / "frame").read_bytes()


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([0, 1, 1, np.nan], "1 66.7%, 0 33.3%"),
        ([3.0, 3.0], "3 100.0%"),
        ([1.0, 2.0, 9.0, 4.0], "1 to 9, median 3"),
        ([np.nan], "no value"),
        (["no", "yes", "no", None], "no 66.7%, yes 33.3%"),
        ([True, False, True, pd.NA], "1 66.7%, 0 33.3%"),
        ([10**400, "a", "b", "c"], "and 1 more"),
    ],
)
def test_columns_in_words(values, words):
    name, missing, _, text = describe("name", np.array(values, dtype=object))
    assert name == "name" and words in text
    assert missing == pytest.approx(100 * pd.isna(values).mean())


def test_columns_of_any_container():
    X = np.array([[0.0, 1.0, 5.0], [1.0, np.nan, 6.0], [1.0, 1.0, 7.0]])
    expected = [describe(j, column) for j, column in enumerate(X.T)]
    for table in (
        pd.DataFrame(X),
        pd.DataFrame(X).convert_dtypes(),
        pl.DataFrame(X).fill_nan(None),
        sparse.csr_array(X),
        X.tolist(),
    ):
        columns = columns_of(table)
        assert [describe(j, column) for j, column in enumerate(columns)] == expected


PROBE = """<!DOCTYPE html><html><body>
<iframe id="page" src="report.html" width="400" height="900"></iframe>
<pre id="found"></pre><script>
window.onload = () => {
  const page = document.getElementById("page").contentWindow;
  const root = page.document.documentElement;
  const loaded = page.performance.getEntriesByType("resource").map(e => e.name);
  document.getElementById("found").textContent = JSON.stringify({
    wide: root.scrollWidth, room: root.clientWidth, loaded: loaded,
    broken: [...page.document.images].filter(i => !i.naturalWidth).length,
  }).replaceAll('"', "'");
};</script></body></html>"""


@pytest.mark.skipif(not shutil.which("chromium"), reason="needs Chromium")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_browser_shows_the_page_on_a_phone(patients, tmp_path, scheme):
    model, X = patients
    model.report(tmp_path / "report.html", X)
    (tmp_path / "probe.html").write_text(PROBE)
    options = "--headless --no-sandbox --disable-gpu --disable-background-networking "
    options += "--disable-component-update --disable-sync --no-first-run "
    options += "--allow-file-access-from-files --enable-logging=stderr --log-level=0 "
    options += f"--user-data-dir={tmp_path / 'profile'} --virtual-time-budget=5000 "
    options += "--force-dark-mode " if scheme == "dark" else ""
    result = subprocess.run(
        ["chromium", *options.split(), "--dump-dom", f"file://{tmp_path}/probe.html"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    found = re.search(r'<pre id="found">(.*?)</pre>', result.stdout)
    assert found, result.stderr
    numbers = dict(re.findall(r"'(wide|room|broken)':(\d+)", found[1]))
    assert int(numbers["wide"]) <= int(numbers["room"]) <= 400
    assert numbers["broken"] == "0"
    outside = re.findall(r"'(\w+:[^']*)'", found[1])
    assert all(name.startswith(("data:", "file:")) for name in outside)
    assert "CONSOLE" not in result.stderr
