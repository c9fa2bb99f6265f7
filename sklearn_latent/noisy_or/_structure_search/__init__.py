"""Structures: quartets (Jernite et al., 2013), then search by likelihood."""
