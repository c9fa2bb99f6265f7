"""Where hidden variables go."""
