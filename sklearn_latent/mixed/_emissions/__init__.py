"""Emissions: how features show the state of their latent."""
