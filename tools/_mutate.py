"""Single-operator mutants of Python source, and a fixed random sample of them."""

from __future__ import annotations

import ast
import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Iterator
from copy import copy
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Mutant", "draw", "mutants_of"]

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitOr,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
PAIRS = [
    ("min", "max"),
    ("minimum", "maximum"),
    ("argmin", "argmax"),
    ("nanmin", "nanmax"),
    ("any", "all"),
    ("floor", "ceil"),
]
SWAPS = dict(PAIRS) | {b: a for a, b in PAIRS}

# Larger numbers are mostly limits, where one more or less should not matter.
LARGEST_INTEGER = 10

# Integers would be most of the sample; control flow is where tests tend to miss.
WEIGHTS = {
    "integer": 0.25,
    "arithmetic": 0.5,
    "comparison": 1.0,
    "guard": 1.0,
    "boolean": 2.0,
    "exit": 2.0,
    "swap": 2.0,
}

# Not the algorithm: messages, progress, how things look.
SKIPPED_FUNCTIONS = {"__repr__", "__str__", "_repr_html_", "__sklearn_tags__", "plot"}
SKIPPED_CALLS = {"warn", "print", "cast", "TypeVar"}
SKIPPED_KEYWORDS = {"stacklevel", "verbose", "random_state", "decimals", "message"}
SKIPPED_TARGETS = {"__all__", "_parameter_constraints"}
SKIPPED_CONDITIONS = {"TYPE_CHECKING", "__name__", "verbose"}


@dataclass(frozen=True)
class Mutant:
    """One change of one operator.

    path: of the module, relative to the root of the project
    function: qualified name, or "<module>"
    lines: first and last line of what is changed
    kind: a key of `WEIGHTS`
    span: bytes of the source that `code` replaces
    before, after: what a reader is shown
    at_import: whether it is outside functions
    """

    path: str
    function: str
    lines: tuple[int, int]
    kind: str
    span: tuple[int, int]
    code: str
    before: str
    after: str
    at_import: bool

    @property
    def text(self) -> tuple[str, str, str, str]:
        """What identifies a mutant when the lines around it change."""
        return self.path, self.function, self.before, self.after

    def apply(self, source: bytes) -> bytes:
        """Source with the change made."""
        start, stop = self.span
        return source[:start] + self.code.encode() + source[stop:]


class _Finder(ast.NodeVisitor):
    """Collects mutants of one module."""

    def __init__(self, path: str, source: bytes):
        self.path = path
        self.starts = [0]
        for line in source.split(b"\n"):
            self.starts.append(self.starts[-1] + len(line) + 1)
        self.scope: list[str] = []
        self.depth = 0
        self.found: list[Mutant] = []

    def add(self, kind, node, changed, before=None, after=None):
        """Record the replacement of a node by another one, or by a statement."""
        is_statement = isinstance(node, ast.stmt)
        code = changed if isinstance(changed, str) else ast.unparse(changed)
        self.found.append(
            Mutant(
                path=self.path,
                function=".".join(self.scope) or "<module>",
                lines=(node.lineno, node.end_lineno),
                kind=kind,
                span=(
                    self.starts[node.lineno - 1] + node.col_offset,
                    self.starts[node.end_lineno - 1] + node.end_col_offset,
                ),
                code=code if is_statement else f"({code})",
                before=_one_line(before or ast.unparse(node)),
                after=_one_line(after or code),
                at_import=self.depth == 0,
            )
        )

    # What is left out

    def visit_ClassDef(self, node):
        self.scope.append(node.name)
        self.visit_all(node.body)
        self.scope.pop()

    def visit_FunctionDef(self, node):
        if node.name in SKIPPED_FUNCTIONS or node.name.startswith("_warn"):
            return
        # Neither decorators, nor annotations, nor defaults.
        self.scope.append(node.name)
        self.depth += 1
        self.visit_all(node.body)
        self.depth -= 1
        self.scope.pop()

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node):
        self.visit(node.body)

    def visit_AnnAssign(self, node):
        if node.value is not None and not _mentions(node.target, SKIPPED_TARGETS):
            self.visit(node.value)

    def visit_Assign(self, node):
        if not any(_mentions(target, SKIPPED_TARGETS) for target in node.targets):
            self.generic_visit(node)

    def visit_keyword(self, node):
        if node.arg not in SKIPPED_KEYWORDS:
            self.visit(node.value)

    def skip(self, node):
        """Messages and the like."""

    visit_Raise = visit_Assert = visit_JoinedStr = visit_Import = visit_ImportFrom = (
        skip
    )

    def visit_all(self, nodes):
        for node in nodes:
            self.visit(node)

    # What is changed

    def visit_Compare(self, node):
        for i, operator in enumerate(node.ops):
            ops = list(node.ops)
            ops[i] = COMPARISONS[type(operator)]()
            self.add("comparison", node, _with(node, ops=ops))
        self.generic_visit(node)

    def visit_BinOp(self, node):
        self.arithmetic(node, [node.left, node.right])

    def visit_AugAssign(self, node):
        self.arithmetic(node, [node.value])

    def arithmetic(self, node, operands):
        # Texts and sequences are joined, not added up.
        joined = any(_is_sequence(operand) for operand in operands)
        if type(node.op) in ARITHMETIC and not joined:
            op = ARITHMETIC[type(node.op)]()
            self.add("arithmetic", node, _with(node, op=op))
        self.generic_visit(node)

    def visit_BoolOp(self, node):
        op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        self.add("boolean", node, _with(node, op=op))
        self.generic_visit(node)

    def visit_UnaryOp(self, node):
        if isinstance(node.op, (ast.Not, ast.Invert)):
            self.add("boolean", node, node.operand)
        self.generic_visit(node)

    def visit_Constant(self, node):
        if type(node.value) is int and node.value <= LARGEST_INTEGER:
            self.integer(node, [node.value + 1, node.value - 1])

    def integer(self, node, values):
        for value in values:
            self.add("integer", node, ast.Constant(value), after=str(value))

    def visit_Subscript(self, node):
        self.visit(node.value)
        if isinstance(node.slice, ast.Constant) and node.slice.value == 0:
            # The first for the last is no change where there is but one.
            self.integer(node.slice, [1])
        else:
            self.visit(node.slice)

    def visit_Call(self, node):
        name = _name(node.func)
        if name in SKIPPED_CALLS:
            return
        if name in SWAPS:
            func = copy(node.func)
            setattr(func, "id" if isinstance(func, ast.Name) else "attr", SWAPS[name])
            self.add("swap", node, _with(node, func=func))
        self.generic_visit(node)

    def visit_If(self, node):
        if _mentions(node.test, SKIPPED_CONDITIONS):
            return
        self.guard("if", node.test)
        last = node.body[-1]
        if isinstance(last, ast.Return) and not node.orelse:
            self.add("exit", last, "pass")
        self.generic_visit(node)

    def visit_IfExp(self, node):
        self.guard("if", node.test)
        self.generic_visit(node)

    def visit_While(self, node):
        if not isinstance(node.test, ast.Constant):
            self.guard("while", node.test, [False])
        self.generic_visit(node)

    def visit_comprehension(self, node):
        for test in node.ifs:
            self.guard("for if", test, [True])
        self.generic_visit(node)

    def guard(self, word, test, values=(True, False)):
        """Conditions that always, or never, hold."""
        before = f"{word} {ast.unparse(test)}"
        for value in values:
            after = f"{word} {value}"
            self.add("guard", test, ast.Constant(value), before, after)

    def visit_Break(self, node):
        self.add("exit", node, "continue")

    def visit_Continue(self, node):
        self.add("exit", node, "break")


def _with(node, **fields):
    """Copy of a node, some fields of it changed."""
    changed = copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return changed


def _one_line(text):
    return " ".join(text.split())


def _name(node):
    """Last part of a dotted name."""
    return getattr(node, "attr", getattr(node, "id", None))


def _mentions(node, names):
    return any(_name(part) in names for part in ast.walk(node))


def _is_sequence(node):
    if isinstance(node, (ast.List, ast.Tuple, ast.ListComp, ast.JoinedStr)):
        return True
    return isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes))


def mutants_of(root: Path, path: str) -> list[Mutant]:
    """All mutants of one module, in the order of its source."""
    source = (root / path).read_bytes()
    finder = _Finder(path, source)
    finder.visit(ast.parse(source))
    return sorted(finder.found, key=lambda mutant: mutant.span)


def draw(candidates: Iterable[Mutant], count: int, seed: int) -> list[Mutant]:
    """Draw mutants at random, at most one per line and spread over modules.

    The draw depends on the text of each candidate, not on its place, so a change
    elsewhere leaves most of the sample as it is.
    """
    candidates = sorted(candidates, key=_place)
    ranked = sorted(_ranked(candidates, seed), key=lambda pair: pair[0])
    n_modules = len({mutant.path for _, mutant in ranked})
    most = math.ceil(3 * count / n_modules) if n_modules else 0
    sample: list[Mutant] = []
    taken: set[tuple[str, int]] = set()
    per_module: Counter[str] = Counter()
    for _, mutant in ranked:
        place = mutant.path, mutant.lines[0]
        if (
            len(sample) < count
            and place not in taken
            and per_module[mutant.path] < most
        ):
            sample.append(mutant)
            taken.add(place)
            per_module[mutant.path] += 1
    return sorted(sample, key=_place)


def _place(mutant):
    return mutant.path, mutant.span, mutant.code


def _ranked(candidates, seed) -> Iterator[tuple[float, Mutant]]:
    """Candidates with an exponential variate each, of the rate of its weight."""
    seen: Counter[tuple] = Counter()
    for mutant in candidates:
        # The same change may be possible at several places of a function.
        seen[mutant.text] += 1
        key = repr((seed, *mutant.text, seen[mutant.text]))
        digest = hashlib.sha256(key.encode()).digest()
        uniform = (int.from_bytes(digest[:8]) + 1) / 2**64
        yield -math.log(uniform) / WEIGHTS[mutant.kind], mutant
