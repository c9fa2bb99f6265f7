"""The package does not grow, and each idea is written once.

Budgets are in ``house_budgets.json`` and only go down; a higher one needs its reason in
the commit that raises it. ``python tests/test_house.py --write`` lowers them to what is
there, ``--raise`` sets them to it.
"""

from __future__ import annotations

import ast
import json
import sys
from collections import Counter
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
PACKAGE = TESTS.parent / "sklearn_latent"
BUDGETS = TESTS / "house_budgets.json"
FILES = sorted(PACKAGE.rglob("*.py"))
FAMILIES = ("noisy_or", "gaussian", "mixed")


def lines() -> dict[str, int]:
    """Lines of each folder of the package, of the modules at its top, of the tests."""
    found: Counter = Counter()
    for file in FILES:
        folders = file.relative_to(PACKAGE).parts[:-1]
        found[folders[0] if folders else "top"] += length(file)
    return {**found, "tests": sum(map(length, TESTS.rglob("*.py")))}


def length(file: Path) -> int:
    """Lines of a file."""
    return len(file.read_bytes().splitlines())


def files() -> dict[str, int]:
    """Number of modules."""
    return {"all": len(FILES)}


def width() -> dict[str, int]:
    """Bytes of a hundred lines: a budget of lines is not met by longer ones."""
    n_bytes = sum(len(file.read_bytes()) for file in FILES)
    return {"all": 100 * n_bytes // sum(map(length, FILES))}


def names() -> dict[str, int]:
    """How often each file name occurs that occurs more than once."""
    found = Counter(file.name for file in FILES if file.name != "__init__.py")
    return {name: count for name, count in sorted(found.items()) if count > 1}


def numbers() -> dict[str, int]:
    """How many constants of modules decide by a number."""
    sources = (file.read_text("utf-8") for file in FILES)
    return {"all": sum(len(deciding(source)) for source in sources)}


def deciding(source: str) -> list[str]:
    """Names in capitals that a module binds to values with a number in them.

    That is 3, -1.5, 1 << 16, np.inf, (2, 3), {"auto": 64} and Width(1e-2, 32).
    """
    found = []
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value:
            targets = getattr(node, "targets", None) or [node.target]
            bound = [n for target in targets for n in ast.walk(target)]
            if any(map(is_number, ast.walk(node.value))):
                found += [n.id for n in bound if isinstance(n, ast.Name)]
    return [name for name in found if name.isupper()]


def is_number(node: ast.AST) -> bool:
    """A number in the source; truth values are none."""
    if isinstance(node, ast.Attribute):
        return node.attr == "inf"
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


KINDS = {
    "lines": lines,
    "width": width,
    "files": files,
    "names": names,
    "numbers": numbers,
}


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_exceeds_its_budget(kind):
    now, budget = KINDS[kind](), json.loads(BUDGETS.read_text("utf-8"))[kind]
    assert {k: n for k, n in now.items() if n > budget.get(k, 0)} == {}, budget


def modules():
    """Path in the package, and the syntax tree, of each module."""
    for file in FILES:
        place = file.relative_to(PACKAGE).as_posix()
        yield place, ast.parse(file.read_text("utf-8"))


def uses(*names: str) -> set[str]:
    """Modules whose code has one of some names."""
    return {
        place
        for place, tree in modules()
        for node in ast.walk(tree)
        if getattr(node, "id", getattr(node, "name", None)) in names
    }


def test_em_has_one_driver():
    assert uses("Convergence") == {"_core/climb.py"}


def test_a_family_has_one_model():
    found: Counter = Counter()
    for place, tree in modules():
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                bases = [base.id for base in node.bases if isinstance(base, ast.Name)]
                found[place.split("/")[0]] += "Network" in bases
    assert {room: n for room, n in found.items() if n} == dict.fromkeys(FAMILIES, 1)


def test_what_counts_as_a_deciding_number():
    yes = "A = 3\nB: float = -1.5\nC, D = 1, (2, 3)\nE = 1 << 16\nF = {'x': np.inf}\n"
    assert deciding(yes + "G = Width(1e-2, 32)") == list("ABCDEFG")
    assert deciding("a = 3\nB = 'x'\nC = True\nD = ('x',)\nE = Width()") == []


if __name__ == "__main__":
    now = {kind: count() for kind, count in KINDS.items()}
    if "--write" in sys.argv:
        old = json.loads(BUDGETS.read_text("utf-8"))
        for kind, found in now.items():
            now[kind] = {k: min(n, old[kind].get(k, 0)) for k, n in found.items()}
    if {"--write", "--raise"} & {*sys.argv}:
        BUDGETS.write_text(json.dumps(now, indent=2) + "\n", "utf-8")
    print(json.dumps(now, indent=2))
