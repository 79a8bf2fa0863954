"""One path from a table to its release: options, plan, spend, run."""
