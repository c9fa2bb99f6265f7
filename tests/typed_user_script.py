"""A script of a user who runs mypy in strict mode; ``test_typing`` checks and runs it.

The comment behind each ``reveal_type`` is part of the type that mypy must show.
"""

from typing import reveal_type

import numpy as np

from sklearn_latent import (
    LPCC,
    SEMDBN,
    GaussianNetwork,
    IdealParentGaussianBN,
    LatentDBN,
    LGLPCCTemporal,
    NoisyOrEM,
    NoisyOrMoMLearner,
    NoisyOrNetwork,
    QuartetStructureLearner,
)
from sklearn_latent.datasets import (
    figure_1_structure,
    make_gaussian_bn,
    make_latent_dbn,
    make_noisy_or,
)
from sklearn_latent.exceptions import PoorDataWarning
from sklearn_latent.metrics import (
    edge_f1,
    match_latents,
    structural_hamming_distance,
)
from sklearn_latent.noisy_or import (
    find_schedule,
    identifiability_order,
    quartet_depth,
)
from sklearn_latent.plotting import (
    LatentGraphDisplay,
    LatentImagesDisplay,
)

# Noisy-or networks.
structure = figure_1_structure()
reveal_type(structure)  # ndarray
X = np.asarray(make_noisy_or(structure, 400, random_state=0).X, dtype=float)
network = NoisyOrNetwork([0.3], [[0.2, 0.3, 0.4]], [0.01, 0.01, 0.01])
reveal_type(network)  # NoisyOrNetwork
reveal_type(network.prior)  # ndarray
reveal_type(network.n_parameters)  # int
reveal_type(network.sample(10, random_state=0))  # tuple[
reveal_type(network.log_likelihood(np.ones((2, 3))))  # ndarray
reveal_type(network.to_dict())  # dict[str, Any]
reveal_type(NoisyOrNetwork.from_json(network.to_json()))  # NoisyOrNetwork
reveal_type(network == network)  # bool

moments = NoisyOrMoMLearner(structure).fit(X)
reveal_type(moments)  # NoisyOrMoMLearner
reveal_type(moments.prior_)  # ndarray
reveal_type(moments.depth_)  # ndarray
reveal_type(moments.network_)  # NoisyOrNetwork
reveal_type(moments.latent_names_)  # ndarray
reveal_type(moments.transform(X))  # ndarray
reveal_type(moments.fit_transform(X))  # ndarray
reveal_type(moments.sample(5, random_state=0))  # tuple[

em = NoisyOrEM(structure=structure, random_state=0).fit(X)
reveal_type(em)  # NoisyOrEM
reveal_type(em.bic_)  # float
reveal_type(em.is_exact_)  # bool
reveal_type(em.converged_)  # bool

quartets = QuartetStructureLearner().fit(X)
reveal_type(quartets)  # QuartetStructureLearner
reveal_type(quartets.structure_)  # ndarray
reveal_type(quartets.depth_)  # ndarray

schedule = find_schedule(structure)
reveal_type(schedule.depth)  # ndarray
reveal_type(schedule.is_complete)  # bool
reveal_type(quartet_depth(structure))  # ndarray
reveal_type(identifiability_order(structure, random_state=0))  # int

# Continuous networks.
rows = np.asarray(make_gaussian_bn(n_samples=100, n_features=4, random_state=0).X)
gaussian = IdealParentGaussianBN().fit(rows)
reveal_type(gaussian)  # IdealParentGaussianBN
reveal_type(gaussian.adjacency_)  # ndarray
reveal_type(gaussian.bic_)  # float
reveal_type(gaussian.network_)  # GaussianNetwork
reveal_type(gaussian.predict_nodes(rows))  # ndarray
reveal_type(gaussian.network_.log_likelihood(rows))  # ndarray
reveal_type(GaussianNetwork.from_json(gaussian.network_.to_json()))  # GaussianNetwork

# Temporal models.
panel = np.asarray(make_latent_dbn("G1", 100, 2, random_state=0).X).reshape(100, -1)
temporal = LGLPCCTemporal(2, random_state=0).fit(panel)
reveal_type(temporal)  # LGLPCCTemporal
reveal_type(temporal.cardinality_)  # ndarray
reveal_type(temporal.network_)  # LatentDBN
reveal_type(temporal.predict(panel))  # ndarray
reveal_type(LatentDBN.from_json(temporal.network_.to_json()))  # LatentDBN
reveal_type(LPCC(random_state=0).fit(panel).structure_)  # ndarray
reveal_type(SEMDBN(2, 2, 2, n_init=1, random_state=0).fit(panel).bic_)  # float

# Metrics and displays.
pairs, _ = match_latents(moments.failure_, em.failure_, prior=em.prior_)
reveal_type(pairs)  # ndarray
reveal_type(edge_f1(structure, quartets.structure_))  # float
reveal_type(structural_hamming_distance(temporal, temporal))  # tuple[int, int]
reveal_type(em.plot())  # LatentGraphDisplay
reveal_type(LatentGraphDisplay.from_estimator(em).positions_)  # dict[
reveal_type(LatentImagesDisplay.from_estimator(em, (1, 5)))  # LatentImagesDisplay
reveal_type(PoorDataWarning("few rows"))  # PoorDataWarning
