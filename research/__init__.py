"""Experiments: one module per table or figure of the paper, with the expected numbers beside it."""
