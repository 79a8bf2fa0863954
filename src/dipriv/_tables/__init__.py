"""Dataframes and Arrow arrays: the only package that knows pandas, polars and numpy tables."""
