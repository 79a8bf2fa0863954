"""A reference learned under differential privacy: cells for each column, then a network of pairwise tables."""
