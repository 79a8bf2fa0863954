"""Rows that can be read again and again, always the same ones: in memory, files, streams, Spark."""
