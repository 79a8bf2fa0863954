"""What every part stands on: arrays, columns of values, registries, compiled loops, atomic files."""
