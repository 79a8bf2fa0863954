"""Attacks that an audit runs on a release. Every module here that registers an attack is found and run."""
