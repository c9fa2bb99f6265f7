"""Structural EM for missing values and hidden variables."""
