"""What every model is built on: checks, EM, criteria, graphs, JSON, warnings."""
