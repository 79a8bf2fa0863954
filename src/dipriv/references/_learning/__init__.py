"""Learning a reference from private rows under differential privacy."""
