"""The tool behind `make mutants`."""

import ast
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TOOLS = ROOT / "tools"

MODULE = '''
"""Not a < b."""

LIMIT = 3


def first(values, n: int = 2):
    """1 + 1."""
    if not values:
        return None
    if n < 0:
        raise ValueError(f"n must be at least {1 + 1}, got {n}")
    return max(values[:n])


def count(n, unused=False):
    while n > LIMIT:
        n -= 1
        if unused and n > 4:
            n -= 2
    return n
'''

SMALL_MODULE = """
def less(a, b):
    return a < b

def add(a, b):
    return a + b

def times(a, b):
    return a * b

def fill(a, b):
    return a % b
"""

SMALL_TESTS = """
from sklearn_latent.module import add, less

def test_less():
    assert less(1, 2) and not less(2, 1)

def test_add():
    assert add(1, 2) == 3
"""

EQUIVALENT = (
    "sklearn_latent/module.py:11 :: fill :: a % b -> a * b :: not of interest\n"
)


@pytest.fixture
def mutate(monkeypatch):
    monkeypatch.syspath_prepend(TOOLS)
    import _mutate

    return _mutate


@pytest.fixture
def project(tmp_path):
    """A project of one module, with the tool."""
    (tmp_path / "sklearn_latent").mkdir()
    (tmp_path / "tests").mkdir()
    shutil.copytree(TOOLS, tmp_path / "tools")
    (tmp_path / "sklearn_latent" / "__init__.py").write_text("")
    (tmp_path / "sklearn_latent" / "module.py").write_text(MODULE)
    return tmp_path


def run(project, *options):
    command = [
        sys.executable,
        "tools/mutants.py",
        "--paths",
        "sklearn_latent/module.py",
    ]
    done = subprocess.run(
        [*command, *options], cwd=project, capture_output=True, text=True, check=False
    )
    assert not done.stderr, done.stderr
    return done.stdout


def test_mutants_change_operators_only(project, mutate):
    path = "sklearn_latent/module.py"
    mutants = mutate.mutants_of(project, path)
    source = (project / path).read_bytes()
    original = ast.dump(ast.parse(source))
    for mutant in mutants:
        assert ast.dump(ast.parse(mutant.apply(source))) != original
    changes = {(m.function, m.before, m.after) for m in mutants}
    assert ("<module>", "3", "4") in changes
    assert ("first", "not values", "values") in changes
    assert ("first", "return None", "pass") in changes
    assert ("first", "max(values[:n])", "min(values[:n])") in changes
    assert ("count", "n -= 1", "n += 1") in changes
    assert ("count", "unused and n > 4", "unused or n > 4") in changes
    # Neither defaults, nor docstrings, nor messages.
    assert not any("1 + 1" in before for _, before, _ in changes)
    assert ("first", "2", "3") not in changes


def test_sample_is_fixed_and_spread(mutate):
    paths = ["noisy_or/_beam.py", "_core/graphs.py", "_core/climb.py"]
    paths = [f"sklearn_latent/{path}" for path in paths]
    found = [m for path in paths for m in mutate.mutants_of(ROOT, path)]
    sample = mutate.draw(found, 12, seed=0)
    assert len(sample) == 12
    assert sample == mutate.draw(reversed(found), 12, seed=0)
    assert sample != mutate.draw(found, 12, seed=1)
    assert len({(mutant.path, mutant.lines[0]) for mutant in sample}) == 12
    # A change of one module leaves the draw from the others.
    fewer = mutate.draw([m for m in found if m.path != paths[2]], 12, seed=0)
    kept = {mutant for mutant in sample if mutant.path != paths[2]}
    assert kept <= set(fewer)


def test_verdicts(project):
    (project / "sklearn_latent" / "module.py").write_text(SMALL_MODULE)
    (project / "tests" / "test_module.py").write_text(SMALL_TESTS)
    (project / "tools" / "equivalent_mutants.txt").write_text(EQUIVALENT)
    out = run(project, "--count", "9", "--jobs", "1")
    pattern = r"^(\w[\w ]+?) +sklearn_latent/module.py:\d+ :: \w+ :: (.*)$"
    verdicts = {change: word for word, change in re.findall(pattern, out, flags=re.M)}
    assert verdicts == {
        "a < b -> a <= b": "survived",
        "a + b -> a - b": "killed",
        "a * b -> a / b": "not covered",
    }
    assert re.search(r"^equivalent +1$", out, flags=re.M)
    # What was killed is not run again.
    assert "a + b" in run(project, "--count", "9", "--list")
    assert "a + b" not in run(project, "--count", "9", "--list", "--again")


def test_modules_and_equivalent_mutants_exist(mutate):
    import mutants

    assert all((ROOT / path).exists() for path in mutants.MODULES)
    for path, function, before, after in mutants.known_equivalents():
        found = [mutant.text for mutant in mutate.mutants_of(ROOT, path)]
        assert (path, function, before, after) in found
