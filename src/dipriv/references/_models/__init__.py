"""Fitted distributions."""
