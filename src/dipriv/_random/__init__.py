"""Random bits and exact noise: the only modules that draw bits."""
