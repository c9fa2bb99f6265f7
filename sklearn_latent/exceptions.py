"""Warnings that say what was poor about the data or approximate about the answer."""

__all__ = [
    "ApproximateInferenceWarning",
    "LatentWarning",
    "PoorDataWarning",
    "UnidentifiableWarning",
]


class LatentWarning(UserWarning):
    """Base of every warning that this library raises on its own account."""


class PoorDataWarning(LatentWarning):
    """The data cannot support part of the model, which stays at a neutral value."""


class UnidentifiableWarning(LatentWarning):
    """Some parameters are outside the reach of the method that was asked for."""


class ApproximateInferenceWarning(LatentWarning):
    """Exact inference was out of reach for some rows; a labelled bound was used."""
