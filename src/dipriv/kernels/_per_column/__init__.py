"""The optimal kernel of each column by itself."""
