"""Fuzzing: random and crafted files against every reader of dipriv.

    python -m fuzz --cases 1000000 --out docs/fuzz.json

Each case is a function of the seed, the target and its number, so that any of them can be run again. It must end in a
result or in a `DiprivError`, soon and in little memory. Cases run in a child process with limits, which is started anew
now and then, and after a crash.
"""
