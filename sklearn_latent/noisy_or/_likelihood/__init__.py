"""Likelihood and EM, exact and variational."""
