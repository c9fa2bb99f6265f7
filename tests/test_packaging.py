"""Files that state the same fact agree."""

import configparser
import re
import tomllib
from pathlib import Path

import pytest
import yaml  # comes with Dask
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

import sklearn_latent

ROOT = Path(__file__).parents[1]

# Tools whose version cannot change the outcome of a test.
NOT_PINNED = {"codespell", "import-linter", "mypy", "ruff"}


def read(path):
    return (ROOT / path).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def setup():
    config = configparser.ConfigParser()
    config.read_string(read("setup.cfg"))
    return config


@pytest.fixture(scope="module")
def pyproject():
    return tomllib.loads(read("pyproject.toml"))


@pytest.fixture(scope="module")
def jobs():
    return yaml.safe_load(read(".github/workflows/ci.yml"))["jobs"]


@pytest.fixture(scope="module")
def citation():
    return yaml.safe_load(read("CITATION.cff"))


def steps(jobs):
    return [step for job in jobs.values() for step in job["steps"]]


def lowest_python(setup):
    (bound,) = SpecifierSet(setup["options"]["python_requires"])
    assert bound.operator == ">="
    return bound.version


def make_targets():
    return set(re.findall(r"^([a-z]+):", read("Makefile"), flags=re.M))


def test_oldest_versions_are_the_declared_bounds(setup):
    extras = setup["options.extras_require"]
    lines = [setup["options"]["install_requires"], extras["plot"], extras["dask"]]
    lines.append(extras["test"])
    declared = [
        Requirement(line)
        for line in "\n".join(lines).splitlines()
        if line.strip() and not line.startswith("%")
    ]
    bounds = {r.name: next(iter(r.specifier)).version for r in declared}
    pins = {}
    for line in read(".ci/oldest.txt").splitlines():
        if "==" in line and not line.startswith("#"):
            name, version = line.split("==")
            pins[name] = version
    for name, bound in bounds.items():
        if name not in NOT_PINNED:
            assert Version(pins[name]) == Version(bound), name


def test_python_versions_agree(setup, pyproject, jobs):
    classifiers = re.findall(r"Python :: (3\.\d+)", setup["metadata"]["classifiers"])
    assert jobs["newest"]["strategy"]["matrix"]["python"] == classifiers
    lowest = lowest_python(setup)
    assert classifiers[0] == lowest
    assert pyproject["tool"]["mypy"]["python_version"] == lowest
    assert pyproject["tool"]["ruff"]["target-version"] == f"py{lowest}".replace(".", "")
    assert f"sys.version_info < {tuple(map(int, lowest.split('.')))}" in read(
        "Makefile"
    )
    oldest = [step.get("with", {}) for step in jobs["oldest"]["steps"]]
    assert [w["python-version"] for w in oldest if "python-version" in w] == [lowest]


def test_citation(citation, setup):
    assert citation["version"] == sklearn_latent.__version__
    assert citation["license"] == setup["metadata"]["license"]
    assert [a["name"] for a in citation["authors"]] == [setup["metadata"]["author"]]
    readme = " ".join(read("README.md").split())
    for reference in citation["references"]:
        assert reference["title"] in readme
        assert str(reference["year"]) in readme
        assert reference["notes"] in sklearn_latent.__all__


def test_changelog_has_the_version():
    assert f"## [{sklearn_latent.__version__}]" in read("CHANGELOG.md")


def test_actions_are_pinned_by_commit(jobs):
    text = read(".github/workflows/ci.yml")
    pins = re.findall(r"uses: (\S+)@([0-9a-f]{40}) # (v[\d.]+)$", text, flags=re.M)
    assert len(pins) == len([step for step in steps(jobs) if "uses" in step])
    assert len(set(pins)) == len({action for action, _, _ in pins})


def test_workflow_runs_what_there_is(jobs):
    commands = "\n".join(step.get("run", "") for step in steps(jobs))
    assert set(re.findall(r"^make ([a-z]+)", commands, flags=re.M)) <= make_targets()
    for path in re.findall(r"\.ci/[\w.]+", commands):
        assert (ROOT / path).exists()
    assert (
        set(re.findall(r"^make ([a-z]+)", read(".ci/run"), flags=re.M))
        <= make_targets()
    )


def test_help_lists_every_target():
    listed = set(re.findall(r"@echo \"make ([a-z]+) ", read("Makefile")))
    assert listed == make_targets() - {"help"}


def test_hooks_before_a_commit_are_those_of_lint():
    (recipe,) = re.findall(r"^lint:.*\n((?:\t.*\n)+)", read("Makefile"), flags=re.M)
    linters = re.findall(r"\$\(BIN\)/([\w-]+)", recipe)
    (repository,) = yaml.safe_load(read(".pre-commit-config.yaml"))["repos"]
    hooks = [hook["entry"].split()[0] for hook in repository["hooks"]]
    assert sorted(hooks) == sorted(f".venv/bin/{linter}" for linter in linters)


def test_source_archive_names_what_exists():
    for line in read("MANIFEST.in").splitlines():
        command, _, names = line.partition(" ")
        if command in ("include", "graft"):
            for name in names.split():
                assert (ROOT / name).exists(), name


@pytest.mark.parametrize("path", sorted(ROOT.glob(".github/ISSUE_TEMPLATE/*.yml")))
def test_issue_forms(path):
    form = yaml.safe_load(path.read_text(encoding="utf-8"))
    if path.name != "config.yml":
        assert {"name", "description", "body"} <= set(form)
        ids = [field["id"] for field in form["body"]]
        assert len(set(ids)) == len(ids)
