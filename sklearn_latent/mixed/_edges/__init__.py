"""Edges between latents, and structural EM."""
