"""Time of the structure learner on ordinary tables, and how much it varies.

Real tables, of which each split takes 70% of the rows at random, or the number in its
name; and networks, with new rows for each split: twelve random causes of 100 features,
the images, the images with a tenth of the pixels flipped, and the images mixed with
eight more sources, each of 5 to 15 or of 32 random pixels.

    python benchmarks/noisy_or_time.py --data FOLDER
    python benchmarks/noisy_or_time.py --case images_500 planted --splits 3

The folder contains news100.csv.gz, nltcs.csv.gz and ability_items.csv.
"""

from __future__ import annotations

import numpy as np
from _binary import PARAMETERS, learn, load_table
from _common import Report, parse_arguments, random_structure

from sklearn_latent.datasets import image_sources, make_noisy_or, make_noisy_or_images
from sklearn_latent.metrics import match_latents

IMAGE = {"prior": 0.25, "failure": 0.1, "leak": 0.001}


def part(name, n_rows=None):
    """Random rows of a real table."""

    def prepare(folder, report):
        table = load_table(name, folder, report)
        if table is None:
            return None
        rows = table.to_numpy()
        n_chosen = n_rows or len(rows) * 7 // 10
        return lambda split: rows[
            np.random.RandomState(split).choice(len(rows), n_chosen, replace=False)
        ]

    return prepare


def network(structure, n_rows, parameters):
    """New rows of the same network."""

    def prepare(folder, report):
        data = make_noisy_or(structure, 1, **parameters, random_state=0)
        return lambda split: data.network.sample(n_rows, random_state=split)[0]

    return prepare


def images(n_rows, flipped=0.0):
    """The images, of which a share of the pixels is flipped."""

    def draw(split):
        X = make_noisy_or_images(n_rows, random_state=split).X
        noise = np.random.RandomState(1000 + split).uniform(size=X.shape) < flipped
        return X ^ noise

    return lambda folder, report: draw


PLANTED = random_structure(12, 100, 12, 0)


def mixed(n_pixels):
    """The images and eight more sources of random pixels."""
    sources = np.vstack([image_sources(), random_structure(8, 64, n_pixels, 0)])
    return network(sources, 10_000, IMAGE)


# Functions of the folder of data and the report that return rows by split.
CASES = {
    "nltcs": part("nltcs"),
    "ability": part("ability"),
    "news_2000": part("news", 2_000),
    "news": part("news"),
    "digits": part("digits"),
    "planted": network(PLANTED, 20_000, PARAMETERS),
    "images_500": images(500),
    "images_2000": images(2_000),
    "images_10000": images(10_000),
    "images_flipped": images(10_000, flipped=0.1),
    "images_mixed_10": mixed((5, 15)),
    "images_mixed_32": mixed(32),
}


def span(values, form="{:.0f}"):
    """Smallest to largest."""
    low, high = form.format(min(values)), form.format(max(values))
    return low if low == high else f"{low} to {high}"


def images_found(model):
    """How many of the eight images the latents are."""
    truth = np.where(image_sources(), IMAGE["failure"], 1.0)
    return match_latents(truth, model.failure_, model.prior_)[1].sum()


def measure(name, rows, n_splits):
    """A row of the table."""
    seconds, latents, found = [], [], []
    for split in range(n_splits):
        X = rows(split)
        time, model = learn(X)
        seconds.append(time)
        latents.append(model.n_latents_)
        if name.startswith("images"):
            found.append(images_found(model))
    return [
        f"{len(X):,}",
        X.shape[1],
        f"{min(seconds):.2f}",
        f"{np.median(seconds):.2f}",
        f"{max(seconds):.2f}",
        f"{max(seconds) / min(seconds):.1f}",
        span(latents),
        span(found) if found else "-",
    ]


def main():
    arguments = parse_arguments(
        __doc__,
        quick={"case": ("digits", "images_500"), "splits": 2},
        data="",
        case=tuple(CASES),
        splits=10,
    )
    report = Report("noisy_or_time", "Time on ordinary tables", quick=arguments.partial)
    report.text(
        f"Processor seconds of a fit over {arguments.splits} splits: smallest, median, "
        "largest, and the ratio of the largest to the smallest; latents, and how many "
        "of the eight images are among them, smallest to largest."
    )
    header = ["table", "rows", "columns", "smallest", "median", "largest", "ratio"]
    widths = [15, 6, 7, 8, 7, 7, 5, 8, 8]
    # Messages about missing tables come before the table of results.
    prepared = {name: CASES[name](arguments.data, report) for name in arguments.case}
    report.begin([*header, "latents", "images"], widths)
    for name, rows in prepared.items():
        if rows is not None:
            report.row([name, *measure(name, rows, arguments.splits)])
    report.close()


if __name__ == "__main__":
    main()
