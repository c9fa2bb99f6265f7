"""States of the chains of a sequence."""
