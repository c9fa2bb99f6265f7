"""The modules that the data of a fit go through, in order, and how deep calls go.

    python tools/walk.py             # one fit per family
    python tools/walk.py Quartet     # those whose name has this in it

Modules that only hold types, constants or import others are not counted: a module is
walked through if one of its functions runs. Depth counts frames of this package alone.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import sklearn_latent
from sklearn_latent import (
    LPCC,
    IdealParentGaussianBN,
    LGLPCCTemporal,
    NoisyOrEM,
    NoisyOrMoMLearner,
    QuartetStructureLearner,
)
from sklearn_latent.datasets import (
    make_gaussian_bn,
    make_latent_dbn,
    make_noisy_or_images,
)

PACKAGE = str(Path(sklearn_latent.__file__).parent)


@dataclass
class Walk:
    """What a call went through.

    modules: paths in the package, in the order in which they are reached, with the
        number of calls that came from other modules
    functions: how many different ones ran
    depth: most frames of the package on top of each other
    """

    modules: dict[str, int] = field(default_factory=dict)
    functions: set = field(default_factory=set)
    depth: int = 0

    @classmethod
    def of(cls, call: Callable) -> Walk:
        """Follow a call."""
        walk, stack = cls(), []

        def follow(frame, event, _):
            place = frame.f_code.co_filename
            if not place.startswith(PACKAGE):
                return
            if event == "call":
                module = place[len(PACKAGE) + 1 :]
                known = walk.modules.setdefault(module, 0)
                walk.modules[module] = known + (not stack or stack[-1] != module)
                walk.functions.add(frame.f_code)
                stack.append(module)
                walk.depth = max(walk.depth, len(stack))
            elif event == "return" and stack:
                stack.pop()

        sys.setprofile(follow)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                call()
        finally:
            sys.setprofile(None)
        return walk


def fits() -> dict[str, Callable]:
    """A small fit per family, and one with gaps."""
    images = make_noisy_or_images(2000, random_state=0)
    line = make_gaussian_bn(n_features=8, n_samples=300, random_state=0).X
    gaps = np.where(np.random.default_rng(0).random(line.shape) < 0.05, np.nan, line)
    panel = make_latent_dbn("G3", n_sequences=200, n_slices=4, random_state=0).X
    rows = panel.reshape(len(panel), 4, -1)[:, 0]
    structure = images.network.structure
    few = images.X[:, structure[:2].any(axis=0)]
    return {
        "NoisyOrMoMLearner": lambda: NoisyOrMoMLearner(structure).fit(images.X),
        "QuartetStructureLearner": lambda: QuartetStructureLearner(random_state=0).fit(
            images.X
        ),
        "NoisyOrEM": lambda: NoisyOrEM(2, random_state=0).fit(few),
        "IdealParentGaussianBN": lambda: IdealParentGaussianBN().fit(line),
        "IdealParentGaussianBN, gaps": lambda: IdealParentGaussianBN().fit(gaps),
        "IdealParentGaussianBN, latents": lambda: IdealParentGaussianBN(
            max_latents=2
        ).fit(line),
        "LPCC": lambda: LPCC(random_state=0).fit(rows),
        "LGLPCCTemporal": lambda: LGLPCCTemporal(4, random_state=0).fit(panel),
    }


def main():
    """Print the walks."""
    part = sys.argv[1] if len(sys.argv) > 1 else ""
    for name, fit in fits().items():
        if part in name:
            walk = Walk.of(fit)
            print(
                f"{name}: {len(walk.modules)} modules, "
                f"{len(walk.functions)} functions, "
                f"{sum(walk.modules.values())} crossings, {walk.depth} frames deep"
            )
            if part:
                print(*(f"    {module}" for module in walk.modules), sep="\n")


if __name__ == "__main__":
    main()
