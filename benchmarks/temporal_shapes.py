"""Random latent dynamic networks and panels of any shape: what is found, and how fast.

Each draw has its own graph of 2 to 8 latents with 2 to 5 states and 2 to 6 features
each, of which all but the own past are at most two parents. A feature shows the state
of its latent with a probability of .5 to .85 (of two states .7 to .85, since .5 says
nothing), a latent follows its parents with .7 to .9. The default learner is given only
the sequences.

SHD counts wrong edges, O-SHD those between latents and features. Precision and recall
are those of edges between latents, the own past included and the direction within a
slice ignored, over all draws together.

    python benchmarks/temporal_shapes.py --shapes 1000x5 --draws 20 --first 0

Run times are processor seconds of one thread. The method was tuned on draws below 100;
reported draws start at 1,000.
"""

from __future__ import annotations

import numpy as np
from _common import Report, clocked, expected, parse_arguments
from scipy.optimize import linear_sum_assignment
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from sklearn_latent.datasets import make_latent_dbn
from sklearn_latent.exceptions import LatentWarning
from sklearn_latent.metrics import structural_hamming_distance
from sklearn_latent.mixed import LGLPCCTemporal, TemporalGraph

SHAPES = ("50x5", "200x5", "1000x5", "5000x10", "20x200", "1x2000")
HEADER = (
    "sequences x slices",
    "latents right",
    "states right",
    "O-SHD",
    "SHD",
    "precision",
    "recall",
    "median s",
    "longest s",
)


def random_graph(rng):
    """Random edges: the own past of most latents, one or two parents of many."""
    n = rng.randint(2, 9)
    features = rng.randint(2, 7, size=n)
    structure = np.repeat(np.eye(n, dtype=bool), features, axis=1)
    intra, inter = np.zeros((2, n, n), dtype=bool)
    for j in range(n):
        inter[j, j] = rng.uniform() < 0.7
        others = [(intra, i) for i in range(j)]
        others += [(inter, i) for i in range(n) if i != j]
        n_parents = rng.choice(3, p=[0.3, 0.5, 0.2])
        for place in rng.permutation(len(others))[:n_parents]:
            matrix, i = others[place]
            matrix[i, j] = True
    return TemporalGraph(structure, intra, inter)


def random_panel(seed, n_sequences, n_slices):
    """A random graph and sequences from it."""
    rng = check_random_state(seed)
    graph = random_graph(rng)
    cards = rng.randint(2, 6, size=graph.n_latents)
    of_feature = cards[graph.structure.argmax(axis=0)]
    lowest = np.where(of_feature == 2, 0.7, 0.5)
    reliability = lowest + (0.85 - lowest) * rng.uniform(size=graph.n_observed)
    persistence = rng.uniform(0.7, 0.9, size=graph.n_latents)
    return make_latent_dbn(
        graph,
        n_sequences,
        n_slices,
        cardinality=cards,
        reliability=reliability,
        persistence=persistence,
        random_state=rng,
    )


def shared_edges(graph, found):
    """Numbers of edges that both graphs have, of the true ones and of those found."""
    overlap = graph.structure.astype(int) @ found.structure.T.astype(int)
    rows, columns = linear_sum_assignment(-overlap)
    kept = overlap[rows, columns] > 0
    rows, columns = rows[kept], columns[kept]
    both = 0
    for name in ("skeleton", "inter"):
        one, two = (_edges(g, name) for g in (graph, found))
        both += np.minimum(one[np.ix_(rows, rows)], two[np.ix_(columns, columns)]).sum()
    return both, *(
        sum(_edges(g, name).sum() for name in ("skeleton", "inter"))
        for g in (graph, found)
    )


def _edges(graph, name):
    """Edges into the next slice, or those within in both directions, halved."""
    if name == "inter":
        return graph.inter.astype(float)
    return (graph.intra | graph.intra.T) / 2


def learn(data):
    """What the default learner finds, and in what time."""
    learner = LGLPCCTemporal(data.n_slices, random_state=0)
    with expected(LatentWarning, ConvergenceWarning):
        (_, seconds), model = clocked(learner.fit, data.X)
    shd, o_shd = structural_hamming_distance(data.graph, model.graph_)
    right = model.n_latents_ == data.graph.n_latents
    states = right and o_shd == 0
    if states:
        first = data.graph.structure.argmax(axis=1)
        of_latent = model.structure_[:, first].argmax(axis=0)
        states = np.array_equal(model.cardinality_[of_latent], data.network.cardinality)
    edges = shared_edges(data.graph, model.graph_)
    return [right, states, o_shd, shd, *edges, seconds]


def summary(shape, results):
    """Row of the table."""
    right, states, o_shd, shd, both, true, found, seconds = np.transpose(results)
    return [
        shape,
        f"{100 * right.mean():.0f}%",
        f"{100 * states.mean():.0f}%",
        f"{o_shd.mean():.1f}",
        f"{shd.mean():.1f}",
        f"{both.sum() / max(found.sum(), 1):.3f}",
        f"{both.sum() / max(true.sum(), 1):.3f}",
        f"{np.median(seconds):.1f}",
        f"{seconds.max():.1f}",
    ]


def main():
    options = parse_arguments(
        __doc__,
        quick={"draws": 2, "shapes": ("200x5", "20x200")},
        shapes=SHAPES,
        draws=20,
        first=1000,
        each=False,
    )
    report = Report("temporal_shapes", "Panels of any shape", quick=options.partial)
    report.text(f"{options.draws} draws each, from {options.first} on.")
    report.begin(HEADER, [18, *[9] * (len(HEADER) - 1)])
    for shape in options.shapes:
        n_sequences, n_slices = map(int, shape.split("x"))
        results = []
        for draw in range(options.first, options.first + options.draws):
            data = random_panel(draw, n_sequences, n_slices)
            results.append(learn(data))
            if options.each:
                report.row(summary(f"{shape}, {draw}", results[-1:]))
        report.row(summary(shape, results))
    report.close()


if __name__ == "__main__":
    main()
