"""Parameters of a known structure, from moments."""
