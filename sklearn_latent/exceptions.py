"""Warnings about poor data, unidentifiable parameters and approximate results."""

__all__ = [
    "ApproximateInferenceWarning",
    "LatentWarning",
    "ModelMisfitWarning",
    "PoorDataWarning",
    "UnidentifiableWarning",
]


class LatentWarning(UserWarning):
    """Base class of all warnings of this library."""


class PoorDataWarning(LatentWarning):
    """The data do not determine part of the model, which keeps a neutral value."""


class UnidentifiableWarning(LatentWarning):
    """Some parameters cannot be identified by the chosen method."""


class ApproximateInferenceWarning(LatentWarning):
    """Exact inference was too expensive for some rows; a bound was used."""


class ModelMisfitWarning(LatentWarning):
    """The fitted model contradicts the data that it was learned from."""
