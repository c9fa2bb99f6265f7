"""EM, and filling gaps."""
