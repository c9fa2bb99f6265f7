"""Comparison of models by held-out likelihood."""
