"""What every fitted model says of itself, whatever its family."""
