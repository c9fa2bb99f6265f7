"""Reading panels and long tables."""
