"""Attacks that an audit runs on a release."""
