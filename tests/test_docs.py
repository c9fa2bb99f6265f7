"""Documentation that can be checked without building it."""

import ast
import doctest
import importlib
import importlib.util
import inspect
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.utils.estimator_checks import check_estimator

import sklearn_latent

ROOT = Path(__file__).parents[1]
DOC = ROOT / "doc"
EXAMPLES = sorted((ROOT / "examples").glob("plot_*.py"))

MODULES = [
    "sklearn_latent",
    "sklearn_latent.baselines",
    "sklearn_latent.datasets",
    "sklearn_latent.exceptions",
    "sklearn_latent.export",
    "sklearn_latent.gaussian",
    "sklearn_latent.metrics",
    "sklearn_latent.noisy_or",
    "sklearn_latent.plotting",
    "sklearn_latent.mixed",
]

# What numpydoc asks for and the house style does not.
IGNORED = {
    "ES01",  # not everything needs an extended summary
    "EX01",  # examples are asked for below, where they help
    "RT02",  # results have names
    "SA01",  # nor does everything need "See Also"
    "SS05",  # its list of verbs takes "Names of ..." for one
}

# Formulas by name, of which the class says what the arguments are.
PARTS = re.compile(
    r"sklearn_latent\.(\w+\.)?("
    r"(Additive|Linear|Link|Multiplicative|Noise|Sigmoid|TemporalGraph)\.\w+"
    r"|(Margin|MixtureMargin|NormalMargin)\.\w+"
    r"|(Emission|Categorical|Gaussian|LogNormal|Ordinal)(Memory|Repeat)?\.\w+"
    r"|Schedule|Step)"
)
IGNORED_OF_PARTS = {"PR01", "PR04", "RT01"}


def public_names():
    """All names under which functions and classes can be imported, by object."""
    names = {}
    for name in MODULES:
        module = importlib.import_module(name)
        for member in module.__all__:
            thing = getattr(module, member)
            if inspect.isclass(thing) or inspect.isfunction(thing):
                names.setdefault(thing, []).append(f"{name}.{member}")
    return names


def public_objects():
    """Functions and classes by the first of their names."""
    return {names[0]: thing for thing, names in public_names().items()}


def public_methods():
    """Methods and properties that the library itself defines."""
    for name, thing in public_objects().items():
        if not inspect.isclass(thing):
            continue
        for member, value in inspect.getmembers(thing):
            function = value.fget if isinstance(value, property) else value
            if (
                not member.startswith("_")
                and callable(function)
                and getattr(function, "__module__", "").startswith("sklearn_latent")
            ):
                yield f"{name}.{member}", value


OBJECTS = public_objects()
METHODS = dict(public_methods())


def problems(name):
    """What numpydoc finds wrong."""
    validate = pytest.importorskip("numpydoc.validate")
    ignored = IGNORED | (IGNORED_OF_PARTS if PARTS.fullmatch(name) else set())
    return [
        f"{code}: {text}"
        for code, text in validate.validate(name)["errors"]
        if code not in ignored
    ]


@pytest.mark.parametrize("name", [*OBJECTS, *METHODS])
def test_docstrings_pass_numpydoc(name):
    assert problems(name) == []


def test_a_poor_docstring_is_found(monkeypatch):
    validate = pytest.importorskip("numpydoc.validate")

    def poor(alpha, beta):
        """does things

        Parameters
        ----------
        alpha : int
            First.
        """

    monkeypatch.setattr(sklearn_latent, "poor", poor, raising=False)
    assert validate.validate("sklearn_latent.poor")["errors"]
    codes = {problem.split(":")[0] for problem in problems("sklearn_latent.poor")}
    assert {"PR01", "SS02"} <= codes


@pytest.mark.parametrize("name", list(OBJECTS))
def test_public_things_have_an_example_that_runs(name):
    thing = OBJECTS[name]
    is_warning = inspect.isclass(thing) and issubclass(thing, Warning)
    if is_warning or PARTS.fullmatch(name) or PARTS.fullmatch(f"{name}.x"):
        return
    assert ">>>" in inspect.getdoc(thing), f"{name} has no example"


def test_the_reference_lists_everything_public():
    text = (DOC / "api.rst").read_text(encoding="utf-8")
    entries = re.findall(r"^   ([a-zA-Z_.0-9]+)$", text, flags=re.M)
    listed = set(entries)
    assert len(entries) == len(listed), "doc/api.rst lists something twice"
    for names in public_names().values():
        short = {name.removeprefix("sklearn_latent.") for name in names}
        assert short & listed, f"{names[0]} is missing in doc/api.rst"
    known = {
        name.removeprefix("sklearn_latent.")
        for names in public_names().values()
        for name in names
    }
    assert listed <= known, listed - known


@pytest.mark.filterwarnings("ignore:FigureCanvasAgg")
@pytest.mark.parametrize("page", sorted(DOC.glob("*.rst")), ids=lambda path: path.stem)
def test_examples_in_pages_run(page, tmp_path, monkeypatch):
    import matplotlib.pyplot as plt

    monkeypatch.chdir(tmp_path)
    result = doctest.testfile(str(page), module_relative=False)
    plt.close("all")
    assert result.failed == 0


@pytest.mark.parametrize("page", sorted(DOC.glob("*.rst")), ids=lambda path: path.stem)
def test_pages_that_are_mentioned_exist(page):
    text = page.read_text(encoding="utf-8")
    targets = re.findall(r":doc:`(?:[^`<]*<)?([a-z_/]+)>?`", text)
    for target in targets:
        if target.startswith("gallery/"):
            name = target.removeprefix("gallery/")
            assert name == "index" or (ROOT / "examples" / f"{name}.py").exists(), (
                target
            )
        else:
            assert (DOC / f"{target}.rst").exists(), target


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_gallery_scripts_have_a_title_and_only_public_imports(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    title, underline = ast.get_docstring(tree, clean=True).splitlines()[:2]
    assert set(underline) == {"="}
    assert len(underline) >= len(title)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module.startswith(
            "sklearn_latent"
        ):
            assert "._" not in node.module, node.module


def test_the_gallery_is_in_order():
    text = (DOC / "conf.py").read_text(encoding="utf-8")
    for path in EXAMPLES:
        assert f'"{path.name}"' in text, f"{path.name} has no place in doc/conf.py"


def snippet():
    """The estimator of the page on contributing."""
    path = DOC / "snippets" / "independent.py"
    spec = importlib.util.spec_from_file_location("independent", path)
    module = importlib.util.module_from_spec(spec)
    # dataclasses look their module up.
    import sys

    sys.modules["independent"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_the_estimator_that_contributors_read_is_one():
    check_estimator(snippet().IndependentFeatures())


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 20), cut=st.integers(0, 20))
def test_its_statistics_add_up(seed, n, cut):
    module = snippet()
    rng = np.random.RandomState(seed)
    on = rng.uniform(size=(n, 3)) < 0.5
    weights = rng.randint(0, 3, size=n).astype(float)
    whole = module.Rates.of(on, weights)
    parts = module.Rates.of(on[:cut], weights[:cut]) + module.Rates.of(
        on[cut:], weights[cut:]
    )
    np.testing.assert_allclose(parts.n_on, whole.n_on)
    assert parts.weight == whole.weight


def test_its_exact_rates_come_back():
    module = snippet()
    X = np.repeat([[1, 0], [1, 1], [0, 0], [0, 0]], 1000, axis=0)
    rate = module.IndependentFeatures().fit(X).network_.rate
    np.testing.assert_allclose(rate, [0.5, 0.25], atol=1e-3)
