"""Rows of a Spark DataFrame."""
