"""Posteriors of the latents of a row."""
