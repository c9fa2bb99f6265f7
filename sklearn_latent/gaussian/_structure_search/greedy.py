"""Greedy search over graphs: add, delete, reverse and replace edges."""

from __future__ import annotations

import numpy as np

from ..._graphs import parents_of, reaches
from .._scores.moves import (
    MoveEvaluator,
    Rules,
    SearchResult,
    rounding_error,
    with_parent,
    without_parent,
)

# Gains are compared to so many decimals: directions that the score cannot tell apart
# are decided by number, not by rounding errors.
DECIMALS = 6
# Reversals whose legality is checked at a time.
REVERSAL_BATCH = 16


class _State:
    """A graph, the scores of its families and of all moves that change one of them.

    Row x of `add`, `replace` and `reverse` belongs to the family of node x; column z to
    the candidate. Whether a candidate would close a cycle is decided when moves are
    compared, because it changes with the graph while the scores do not.
    """

    def __init__(self, evaluator: MoveEvaluator, adjacency, rules: Rules):
        self.evaluator = evaluator
        self.forbidden = rules.forbidden
        self.required = rules.required
        self.max_parents = rules.max_parents
        self.adjacency = adjacency.copy()
        n = len(adjacency)
        self.numbers = np.arange(n)
        self.reach = reaches(adjacency)
        self.parents = [parents_of(adjacency, x) for x in range(n)]
        self.scores = np.zeros(n)
        self.add = np.full((n, n), -np.inf)
        self.delete = np.full((n, n), -np.inf)
        self.replace = np.full((n, n), -np.inf)
        self.replaced = np.zeros((n, n), dtype=int)
        self.reverse = np.full((n, n), -np.inf)
        # Best legal candidate of each row of `add` and of `replace`; best parent of
        # each row of `delete`.
        self.best_add = np.zeros(n, dtype=int)
        self.best_replace = np.zeros(n, dtype=int)
        self.best_delete = np.zeros(n, dtype=int)
        self.edges = np.argwhere(adjacency)
        self.scan(range(n))

    def scan(self, nodes):
        """Score all moves of some families."""
        nodes = sorted(nodes)
        evaluator = self.evaluator
        families = [(x, self.parents[x]) for x in nodes]
        allowed = ~self.forbidden.T[nodes] & ~self.adjacency.T[nodes]
        if not evaluator.is_exhaustive:
            # Candidates that are out of reach now must not take the place of others.
            allowed &= ~self.reach[nodes]
        room = np.array([len(self.parents[x]) < self.max_parents for x in nodes])
        for x, parents in families:
            self.scores[x] = evaluator.family_score(x, parents)
        before = self.scores[nodes, None]
        added = evaluator.add_scores(families, allowed & room[:, None])
        self.add[nodes] = np.round(added - before, DECIMALS)
        replaced = evaluator.replace_scores(families, allowed)
        for (x, parents), scores in zip(families, replaced, strict=True):
            self.delete[x] = self.replace[x] = -np.inf
            if not parents:
                continue
            index = np.array(parents)
            fixed = self.required[index, x]
            gains = evaluator.delete_scores(x, parents) - self.scores[x]
            gains = np.round(gains, DECIMALS)
            if fixed.any():
                scores = np.where(fixed[:, None], -np.inf, scores)
                gains[fixed] = -np.inf
            self.delete[x, index] = gains
            self.best_delete[x] = index[gains.argmax()]
            scores = np.round(scores - self.scores[x], DECIMALS)
            best = scores.argmax(axis=0)
            self.replace[x] = scores[best, self.numbers]
            self.replaced[x] = index[best]
        self.reverse[nodes] = -np.inf  # there may be no room any more
        self.scan_reversals(nodes, self.adjacency[nodes])
        self.rank(nodes)

    def scan_reversals(self, nodes, children):
        """Score families with a child as one more parent."""
        if self.evaluator.is_exhaustive:
            self.reverse[nodes] = self.add[nodes]
            return
        nodes = list(nodes)
        if not children.any():
            return
        room = np.array([len(self.parents[x]) < self.max_parents for x in nodes])
        children = (
            children & ~self.forbidden.T[nodes] & ~self.required[nodes] & room[:, None]
        )
        scores = self.evaluator.reverse_scores(
            [(x, self.parents[x]) for x in nodes], children
        )
        gains = np.round(scores - self.scores[nodes, None], DECIMALS)
        self.reverse[nodes] = np.where(children, gains, self.reverse[nodes])

    def rank(self, nodes):
        """Find the best candidates that close no cycle, for some families."""
        illegal = self.reach[nodes]
        self.best_add[nodes] = np.where(illegal, -np.inf, self.add[nodes]).argmax(1)
        self.best_replace[nodes] = np.where(
            illegal, -np.inf, self.replace[nodes]
        ).argmax(1)

    def best_move(self):
        """Best legal move as (gain, move); (-inf, None) if there is none."""
        rows = self.numbers
        best: tuple[float, tuple | None] = -np.inf, None
        for kind, table, choice in (
            ("add", self.add, self.best_add),
            ("replace", self.replace, self.best_replace),
        ):
            gains = np.where(self.reach[rows, choice], -np.inf, table[rows, choice])
            x = int(gains.argmax())
            if gains[x] > best[0]:
                z = int(choice[x])
                gone = (int(self.replaced[x, z]),) if kind == "replace" else ()
                best = float(gains[x]), (kind, *gone, z, x)
        gains = self.delete[rows, self.best_delete]
        x = int(gains.argmax())
        if gains[x] > best[0]:
            best = float(gains[x]), ("delete", int(self.best_delete[x]), x)
        return max(best, self._best_reversal(best[0]), key=lambda found: found[0])

    def _best_reversal(self, floor):
        """Best legal reversal whose gain is above the floor."""
        parents, children = self.edges.T
        gains = self.delete[children, parents] + self.reverse[parents, children]
        above = np.flatnonzero(gains > floor)
        above = above[np.argsort(-gains[above], kind="stable")]
        for part in range(0, len(above), REVERSAL_BATCH):
            places = above[part : part + REVERSAL_BATCH]
            u, x = parents[places], children[places]
            # Legal if the edge is the only path from u to x.
            n_paths = (self.adjacency[u] & self.reach.T[x]).sum(axis=1)
            for place in places[n_paths == 1].tolist():
                move = "reverse", int(parents[place]), int(children[place])
                return float(gains[place]), move
        return -np.inf, None

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
        self.scan(touched)
        if added and not self.evaluator.is_exhaustive:
            child = np.zeros((1, len(self.scores)), dtype=bool)
            child[0, added[1]] = True
            self.scan_reversals([added[0]], child)

    def _link(self, u, x):
        """Add an edge; whatever reached u now reaches all that x reaches."""
        self.adjacency[u, x] = True
        self.parents[x] = with_parent(self.parents[x], u)
        self.edges = np.append(self.edges, [[u, x]], axis=0)
        self.reach[self.reach[:, u]] |= self.reach[x]
        rows = self.numbers
        lost = self.reach[rows, self.best_add] | self.reach[rows, self.best_replace]
        self.rank(np.flatnonzero(lost))

    def _cut(self, u, x):
        """Remove an edge; only what reached u can reach less than before."""
        self.adjacency[u, x] = False
        self.parents[x] = without_parent(self.parents[x], u)
        self.edges = self.edges[(self.edges != (u, x)).any(axis=1)]
        self.reverse[u, x] = -np.inf
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
        self.rank(np.flatnonzero(changed))


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
    tol = max(rules.tol, rounding_error(state.scores))
    history: list = []
    refreshed = evaluator.is_exhaustive
    while len(history) < rules.max_iter:
        gain, move = state.best_move()
        if move is None or gain <= tol:
            if refreshed:
                break
            # Pruning looked at candidates that were legal then; look once more.
            state.scan(range(evaluator.n_nodes))
            refreshed = True
            continue
        refreshed = evaluator.is_exhaustive
        before = state.scores.sum()
        state.apply(move)
        score = state.scores.sum()
        history.append((move, float(score - before)))
        if rules.progress is not None and rules.progress(
            f"{move[0]} {' '.join(map(str, move[1:]))}: gain {gain:.4g}, score "
            f"{score:.8g}"
        ):
            break
    return SearchResult(state.adjacency, float(state.scores.sum()), history)
