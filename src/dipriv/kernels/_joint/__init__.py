"""The optimal kernel of all columns together."""
