"""Likelihood and expectations of rows."""
