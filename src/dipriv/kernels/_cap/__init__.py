"""The cap kernel: one module each for normal quantiles, the bounds of the proof, what is expected, and the sampler."""
