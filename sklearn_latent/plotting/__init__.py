"""Pictures of fitted models, in the way of scikit-learn's displays."""

from ._graph import LatentGraphDisplay
from ._images import LatentImagesDisplay

__all__ = ["LatentGraphDisplay", "LatentImagesDisplay"]
