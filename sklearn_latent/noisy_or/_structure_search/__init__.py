"""Structures: quartets and what follows from them, then search by likelihood."""
