"""Structural EM for missing values and latents."""
