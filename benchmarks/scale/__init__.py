"""Spark beside the stream of one process, and a worker that is killed in the middle of its work."""
