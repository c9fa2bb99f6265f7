"""Latent class models of rows without time."""
