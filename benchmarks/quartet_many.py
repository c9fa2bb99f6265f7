"""Structure learning with 10 to 160 latents, most of them coupled.

Random networks: each latent has 5 to 15 children among three times as many features as
latents; priors from 0.02 to 0.3, failures from 0.1 to 0.7 and leaks from 0.001 to 0.05,
all uniform. Beside the default: quartets alone, NMF that is told the number of latents
(at the threshold that works best in hindsight), and EM that is told the structure and
starts from the true parameters, which is the limit.

    python benchmarks/quartet_many.py
    python benchmarks/quartet_many.py --latents 20 --rows 2000 --method default

Without --draws there are ten draws where they are affordable, fewer in large networks.
"""

from __future__ import annotations

import numpy as np
from _binary import fit, learn, match_children, random_network
from _common import Report, clocked, component_supports, expected, parse_arguments
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning

from sklearn_latent import NoisyOrEM
from sklearn_latent.metrics import edge_f1

RIGHT = 0.9  # F1 score of a set of children that counts as found
SPURIOUS = 0.5  # F1 score below which a learned latent is not the true one
NO_EDGE = 0.95  # failure of an edge without effect; the true ones are below 0.7

# Latents x rows of all draws together that are affordable.
AFFORDABLE = 4_000_000


def default(data):
    seconds, model = learn(data.X)
    return seconds, model.structure_


def quartets_alone(data):
    seconds, model = learn(data.X, refine=False)
    return seconds, model.structure_


def nmf(data):
    truth = data.network.structure
    model = NMF(len(truth), max_iter=500, random_state=0)
    with expected(ConvergenceWarning):
        (_, seconds), model = clocked(model.fit, data.X.astype(float))
    choices = component_supports(model.components_)
    return seconds, max(choices, key=lambda found: edge_f1(truth, found))


def em_from_the_truth(data):
    """None if today's EM cannot enumerate so many latents."""
    truth = data.network
    for inference in ("auto", "exact"):
        model = NoisyOrEM(
            structure=truth.structure,
            inference=inference,
            warm_start=True,
            random_state=0,
        )
        model.network_ = truth  # where a warm start goes on
        try:
            seconds, model = fit(model, data.X)
        except ValueError as error:
            if "inference" not in str(error):
                raise
            continue
        return seconds, model.structure_ & (model.failure_ < NO_EDGE)
    return None


METHODS = {
    "default": default,
    "alone": quartets_alone,
    "nmf": nmf,
    "em": em_from_the_truth,
}


def judge(truth, found):
    """Latents found, sets of children that are right, spurious latents, F1 score."""
    scores = match_children(truth, found)[2]
    spurious = len(found) - (scores >= SPURIOUS).sum()
    return len(found), (scores >= RIGHT).sum(), spurious, edge_f1(truth, found)


def measure(method, n_latents, n_samples, n_draws):
    """One row of the table, or None if the method cannot do it."""
    results = []
    for draw in range(n_draws):
        data = random_network(n_latents, n_samples, draw)
        answer = METHODS[method](data)
        if answer is None:
            return None
        seconds, found = answer
        results.append([*judge(data.network.structure, found), seconds])
    found, right, spurious, edges, seconds = np.transpose(results)
    return [
        f"{found.mean():.1f}",
        f"{right.mean():.1f}",
        f"{spurious.mean():.1f}",
        f"{edges.mean():.3f} ({edges.min():.3f})",
        f"{np.median(seconds):.1f}",
    ]


def main():
    arguments = parse_arguments(
        __doc__,
        quick={"latents": (10,), "rows": (2_000,), "draws": 1},
        latents=(10, 20, 40, 80, 160),
        rows=(2_000, 10_000, 50_000),
        method=tuple(METHODS),
        draws=0,
    )
    report = Report("quartet_many", "Many latents", quick=arguments.partial)
    report.text(
        "Means over draws: latents found, sets of children that are right (F1 at least "
        f"{RIGHT}), spurious latents (F1 below {SPURIOUS}), F1 score of edges "
        "(smallest in brackets); median processor seconds."
    )
    header = ["latents", "rows", "method", "draws", "found", "right", "spurious"]
    report.begin([*header, "F1", "seconds"], [7, 6, 7, 5, 5, 5, 8, 13, 7])
    for n_latents in arguments.latents:
        for n_samples in arguments.rows:
            affordable = AFFORDABLE // (n_latents * n_samples)
            n_draws = arguments.draws or int(np.clip(affordable, 1, 10))
            for method in arguments.method:
                row = measure(method, n_latents, n_samples, n_draws)
                if row is not None:
                    report.row([n_latents, f"{n_samples:,}", method, n_draws, *row])
    report.close()


if __name__ == "__main__":
    main()
