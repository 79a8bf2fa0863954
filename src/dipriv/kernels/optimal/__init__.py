"""The kernels that keep the most of each row at a given ε."""
