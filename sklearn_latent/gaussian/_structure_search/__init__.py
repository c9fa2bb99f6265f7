"""Search over graphs and over orders."""
