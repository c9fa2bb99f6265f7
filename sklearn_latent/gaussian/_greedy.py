"""Greedy search over graphs: add, delete, reverse and replace edges."""

from __future__ import annotations

import numpy as np

from .._core.graphs import parents_of, reaches
from ._rules import (
    TIE,
    MoveEvaluator,
    Rules,
    SearchResult,
    least_gain,
    with_parent,
    without_parent,
)


class _State:
    """A graph, the scores of its families and of all moves that change one of them.

    Row x of `add` and `replace` belongs to the family of node x; column z to the
    candidate. Whether a candidate would close a cycle is decided when moves are ranked,
    because it changes with the graph while the scores do not. A reversal is a deletion
    from the child and an addition to the parent.

    gains: of the best legal addition, replacement and deletion of each family, (3,
        n_nodes)
    choice: candidate of the best addition and replacement, (2, n_nodes)
    drops: gains without each parent of a family, by candidate instead of it; the last
        column is a deletion, (n_parents, n_nodes + 1)
    open: candidates of each family that no rule excludes and that are no parents
    stale: nodes whose moves are to be ranked again
    edges: parents and children in the first `n_edges` columns, (2, space)
    """

    def __init__(self, evaluator: MoveEvaluator, adjacency, rules: Rules):
        self.evaluator = evaluator
        # Candidates of each family that no rule excludes, (n_nodes, n_nodes).
        self.free = ~(rules.forbidden | rules.required).T
        self.required = rules.required
        self.is_bound = bool(rules.required.any())
        self.max_parents = rules.max_parents
        self.adjacency = adjacency.copy()
        self.open = self.free & ~adjacency.T
        n = len(adjacency)
        self.numbers = np.arange(n)
        self.reach = reaches(adjacency)
        self.parents = [parents_of(adjacency, x) for x in range(n)]
        self.scores = np.zeros(n)
        self.moves = np.full((2, n, n), -np.inf)
        self.add, self.replace = self.moves
        self.delete = np.full((n, n), -np.inf)
        self.drops = [np.empty((0, n + 1))] * n
        self.gains = np.full((3, n), -np.inf)
        self.choice = np.zeros((2, n), dtype=int)
        self.allowed = np.zeros((n, n), dtype=bool)
        self.edges = np.array(np.nonzero(adjacency))
        self.n_edges = self.edges.shape[1]
        self.stale: set[int] = set()
        self.scan(range(n))

    def scan(self, nodes):
        """Score all moves of some families."""
        nodes = sorted(nodes)
        evaluator = self.evaluator
        families = [(x, self.parents[x]) for x in nodes]
        room = [len(parents) < self.max_parents for _, parents in families]
        allowed = self._allowed(nodes)
        self.allowed[nodes] = allowed
        children = self.adjacency[nodes] & self.free[nodes]
        scores = evaluator.move_scores(families, allowed, children, room)
        for family, own in zip(families, scores, strict=True):
            self._keep(*family, own)
        self.stale.update(nodes)
        self.rank()

    def _allowed(self, nodes) -> np.ndarray:
        """Candidates of some families."""
        allowed = self.open[nodes]
        if not self.evaluator.is_exhaustive:
            # Candidates that are out of reach now must not take the place of others.
            allowed &= ~self.reach[nodes]
        return allowed

    def refresh(self):
        """Scan families that have other candidates than when they were scanned."""
        changed = (self._allowed(self.numbers) != self.allowed).any(axis=1)
        if changed.any():
            self.scan(changed.nonzero()[0].tolist())

    def _keep(self, x, parents, scores):
        """Keep the gains of the moves of a family."""
        self.scores[x] = now = scores[0, -1]
        gains = scores - now
        self.add[x] = gains[0, :-1]
        self.delete[x] = -np.inf
        self.drops[x] = drops = gains[1:]
        if not parents:
            self.replace[x] = self.gains[2, x] = -np.inf
            return
        index = list(parents)
        if self.is_bound:
            drops[self.required[index, x]] = -np.inf
        self.delete[x, index] = drops[:, -1]
        best = drops.max(axis=0)
        self.replace[x], self.gains[2, x] = best[:-1], best[-1]

    def rank(self):
        """Find the best moves that close no cycle, for families that changed."""
        nodes = list(self.stale)
        self.stale.clear()
        legal = np.where(self.reach[nodes], -np.inf, self.moves[:, nodes])
        self.gains[:2, nodes] = best = legal.max(axis=2)
        self.choice[:, nodes] = (legal >= best[:, :, None] - TIE).argmax(axis=2)

    def best_move(self):
        """Best legal move as (gain, move); (-inf, None) if there is none."""
        first = int((self.gains >= self.gains.max() - TIE).argmax())
        kind, x = divmod(first, len(self.numbers))
        gain, move = float(self.gains[kind, x]), None
        if gain > -np.inf:
            new = [int(self.choice[kind, x])] if kind < 2 else []
            gone = []
            if kind > 0:
                drops = self.drops[x][:, new[0] if new else -1]
                gone = [self.parents[x][(drops >= drops.max() - TIE).argmax()]]
            move = ("add", "replace", "delete")[kind], *gone, *new, x
        return self._best_reversal(gain) or (gain, move)

    def _best_reversal(self, floor):
        """Best legal reversal whose gain is above the floor; None if there is none."""
        parents, children = self.edges[:, : self.n_edges]
        gains = self.delete[children, parents] + self.add[parents, children]
        above = (gains > floor + TIE).nonzero()[0]
        if not len(above):
            return None
        u, x = parents[above], children[above]
        # Legal if the edge is the only path from u to x.
        above = above[(self.adjacency[u] & self.reach.T[x]).sum(axis=1) == 1]
        if not len(above):
            return None
        place = above[(gains[above] >= gains[above].max() - TIE).argmax()]
        move = "reverse", int(parents[place]), int(children[place])
        return float(gains[place]), move

    def apply(self, move):
        """Change the graph and score what the change touches."""
        kind, u, *rest = move
        x = rest[-1]
        touched = {x}
        added = None
        if kind in ("delete", "reverse", "replace"):
            self._cut(u, x)
        if kind == "add":
            added = u, x
        elif kind == "replace":
            added = rest[0], x
        elif kind == "reverse":
            added = x, u
            touched.add(u)
        if added:
            self._link(*added)
        if added and self.add[added] == -np.inf:
            # Pruning has not looked at the reversal of the new edge.
            touched.add(added[0])
        self.scan(touched)

    def _link(self, u, x):
        """Add an edge; whatever reached u now reaches all that x reaches."""
        self.adjacency[u, x] = True
        self.open[x, u] = False
        self.parents[x] = with_parent(self.parents[x], u)
        if self.n_edges == self.edges.shape[1]:
            space = np.empty((2, self.n_edges + 64), dtype=int)
            self.edges = np.hstack([self.edges, space])
        self.edges[:, self.n_edges] = u, x
        self.n_edges += 1
        self.reach[self.reach[:, u]] |= self.reach[x]
        lost = self.reach[self.numbers, self.choice].any(axis=0)
        self.stale.update(np.flatnonzero(lost).tolist())

    def _cut(self, u, x):
        """Remove an edge; only what reached u can reach less than before."""
        self.adjacency[u, x] = False
        self.open[x, u] = self.free[x, u]
        self.parents[x] = without_parent(self.parents[x], u)
        edges = self.edges[:, : self.n_edges]
        self.edges = edges[:, (edges[0] != u) | (edges[1] != x)]
        self.n_edges -= 1
        above = np.flatnonzero(self.reach[:, u])
        # A node reaches more than any of its children, so this order visits children
        # first.
        above = above[np.argsort(self.reach[above].sum(axis=1), kind="stable")]
        changed = np.zeros(len(self.scores), dtype=bool)
        for node in above.tolist():
            children = self.adjacency[node]
            if node != u and not (children & changed).any():
                continue
            reach = self.reach[children].any(axis=0)
            reach[node] = True
            if not np.array_equal(reach, self.reach[node]):
                self.reach[node] = reach
                changed[node] = True
        self.stale.update(changed.nonzero()[0].tolist())


def greedy_search(
    evaluator: MoveEvaluator, rules: Rules | None = None, *, initial=None
) -> SearchResult:
    """Hill climbing over graphs, algorithm 1 of Elidan et al. (2007).

    With an evaluator that prunes it is algorithm 2. Only families that a move touched
    are scored again.
    """
    rules = Rules.free(evaluator.n_nodes) if rules is None else rules
    start = rules.required if initial is None else initial | rules.required
    state = _State(evaluator, start, rules)
    tol = max(rules.tol, least_gain(state.scores))
    history: list = []
    score = float(state.scores.sum())
    refreshed = evaluator.is_exhaustive
    while len(history) < rules.max_iter:
        gain, move = state.best_move()
        if move is None or gain <= tol:
            if refreshed:
                break
            # Pruning looked at candidates that were legal then; look once more.
            state.refresh()
            refreshed = True
            continue
        refreshed = evaluator.is_exhaustive
        state.apply(move)
        before, score = score, float(state.scores.sum())
        history.append((move, score - before))
        if rules.progress is not None and rules.progress(
            f"{move[0]} {' '.join(map(str, move[1:]))}: gain {gain:.4g}, score "
            f"{score:.8g}"
        ):
            break
    return SearchResult(state.adjacency, score, history)
