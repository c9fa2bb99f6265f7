"""Pairwise cluster comparison, local graphs and their vote."""
