"""Sufficient statistics of rows."""
