"""Greedy search over graphs: add, delete, reverse and replace edges."""

from __future__ import annotations

from collections import deque

import numpy as np
from sklearn.utils import check_random_state

from ..._graphs import parents_of, reaches
from .._scores.moves import (
    MoveEvaluator,
    SearchResult,
    rounding_error,
    with_parent,
    without_parent,
)

__all__ = ["SearchResult", "greedy_search"]

# Random moves before a restart, as a share of the number of nodes.
RESTART_SHARE = 0.3
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

    def __init__(self, evaluator, adjacency, forbidden, required, max_parents):
        self.evaluator = evaluator
        self.forbidden = forbidden
        self.required = required
        self.max_parents = max_parents
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
        self.scan_reversals(nodes, self.adjacency[nodes])
        self.rank(nodes)

    def scan_reversals(self, nodes, children):
        """Score families with a child as one more parent."""
        if self.evaluator.is_exhaustive:
            self.reverse[nodes] = self.add[nodes]
            return
        nodes = list(nodes)
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

    def best_move(self, tabu=()):
        """Best legal move as (gain, move); (-inf, None) if there is none."""
        if tabu:
            return self._best_move_outside(tabu)
        rows = self.numbers
        best: tuple[float, tuple | None] = -np.inf, None
        for table, choice in (
            (self.add, self.best_add),
            (self.replace, self.best_replace),
        ):
            gains = np.where(self.reach[rows, choice], -np.inf, table[rows, choice])
            x = int(gains.argmax())
            if gains[x] > best[0]:
                best = float(gains[x]), self._describe(table, x, int(choice[x]))
        gains = self.delete[rows, self.best_delete]
        x = int(gains.argmax())
        if gains[x] > best[0]:
            best = float(gains[x]), ("delete", int(self.best_delete[x]), x)
        return max(best, self._best_reversal(best[0]), key=lambda found: found[0])

    def _describe(self, table, x, z):
        if table is self.add:
            return "add", z, x
        return "replace", int(self.replaced[x, z]), z, x

    def _best_reversal(self, floor, tabu=()):
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
                if move[1:] not in tabu:
                    return float(gains[place]), move
        return -np.inf, None

    def _best_move_outside(self, tabu):
        """Best legal move that touches no pair of nodes on the tabu list."""
        n = len(self.scores)
        free = np.ones((n, n), dtype=bool)
        for u, x in tabu:
            free[u, x] = False
        best: tuple[float, tuple | None] = -np.inf, None
        for table in (self.add, self.replace):
            gains = np.where(self.reach | ~free, -np.inf, table)
            if table is self.replace:
                rows = np.arange(n)[:, None]
                gains = np.where(free[rows, self.replaced], gains, -np.inf)
            x, z = np.unravel_index(gains.argmax(), gains.shape)
            if gains[x, z] > best[0]:
                best = float(gains[x, z]), self._describe(table, int(x), int(z))
        gains = np.where(free, self.delete, -np.inf)
        x, u = np.unravel_index(gains.argmax(), gains.shape)
        if gains[x, u] > best[0]:
            best = float(gains[x, u]), ("delete", int(u), int(x))
        return max(best, self._best_reversal(best[0], tabu), key=lambda found: found[0])

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


def _pairs(move):
    """Ordered pairs of nodes that a move changes, in both directions."""
    *others, x = move[1:]
    return [pair for u in others for pair in ((u, x), (x, u))]


def _climb(state, history, *, tol, max_iter, tabu, report):
    """Follow the best moves; with a tabu list, also downhill for a while."""
    best, graph = state.scores.sum(), state.adjacency.copy()
    is_best = True
    n_downhill = 0
    recent: deque = deque(maxlen=max(tabu, 1))
    refreshed = state.evaluator.is_exhaustive
    while len(history) < max_iter:
        listed = {pair for pairs in recent for pair in pairs} if n_downhill else ()
        gain, move = state.best_move(listed)
        if move is None or (gain <= tol and n_downhill >= tabu):
            if refreshed or n_downhill:
                break
            # Pruning looked at candidates that were legal then; look once more.
            state.scan(range(len(state.scores)))
            refreshed = True
            continue
        refreshed = state.evaluator.is_exhaustive
        if is_best and gain <= tol:  # the last moment to keep the best graph
            graph = state.adjacency.copy()
        before = state.scores.sum()
        state.apply(move)
        score = state.scores.sum()
        history.append((move, float(score - before)))
        recent.append(_pairs(move))
        is_best = score > best + tol or (gain > tol and n_downhill == 0)
        if is_best:
            best, n_downhill = score, 0
        else:
            n_downhill += 1
        if report(move, gain, score):
            break
    return best, state.adjacency.copy() if is_best else graph


def _perturb(state, rng, n_moves):
    """Make random legal moves."""
    n = len(state.scores)
    for _ in range(n_moves):
        x, z = int(rng.randint(n)), int(rng.randint(n))
        if state.adjacency[z, x]:
            if not state.required[z, x]:
                state.apply(("delete", z, x))
        elif np.isfinite(state.add[x, z]) and not state.reach[x, z]:
            state.apply(("add", z, x))


def greedy_search(
    evaluator: MoveEvaluator,
    *,
    initial=None,
    forbidden=None,
    required=None,
    max_parents=None,
    max_iter=10_000,
    tol=1e-6,
    tabu=0,
    n_restarts=0,
    random_state=None,
    progress=None,
) -> SearchResult:
    """Hill climbing over graphs, algorithm 1 of [1]_.

    With an evaluator that prunes it is algorithm 2. Only families that a move touched
    are scored again.

    initial (n_nodes, n_nodes), forbidden, required (n_nodes, n_nodes).

    References
    ----------
    .. [1] Elidan, G., Nachman, I. and Friedman, N. (2007). "Ideal parent" structure
       learning for continuous variable Bayesian networks. JMLR 8.
    """
    n = evaluator.n_nodes
    required = np.zeros((n, n), dtype=bool) if required is None else required
    forbidden = np.zeros((n, n), dtype=bool) if forbidden is None else forbidden
    forbidden = forbidden | np.eye(n, dtype=bool)
    initial = required if initial is None else initial | required
    max_parents = n if max_parents is None else max_parents
    rng = check_random_state(random_state)
    stopped = False

    def report(move, gain, score):
        nonlocal stopped
        if progress is not None:
            nodes = " ".join(map(str, move[1:]))
            stopped = bool(
                progress(f"{move[0]} {nodes}: gain {gain:.4g}, score {score:.8g}")
            )
        return stopped

    state = _State(evaluator, initial, forbidden, required, max_parents)
    tol = max(tol, rounding_error(state.scores))
    history: list = []
    score, adjacency = _climb(
        state, history, tol=tol, max_iter=max_iter, tabu=tabu, report=report
    )
    for _ in range(n_restarts):
        if stopped or n < 2:
            break
        state = _State(evaluator, adjacency, forbidden, required, max_parents)
        _perturb(state, rng, max(2, int(RESTART_SHARE * n)))
        again: list = []
        found, graph = _climb(
            state, again, tol=tol, max_iter=max_iter, tabu=tabu, report=report
        )
        if found > score + tol:
            score, adjacency = found, graph
            history += [(("restart",), 0.0), *again]
    return SearchResult(adjacency, float(score), history)
