"""Parameters of a known structure, from moments (Halpern and Sontag, 2013)."""
