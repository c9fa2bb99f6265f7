"""Whether sequences follow a fitted network."""
