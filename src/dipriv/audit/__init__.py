"""Evidence that the promise holds, and attacks that show where it does not."""

from __future__ import annotations
