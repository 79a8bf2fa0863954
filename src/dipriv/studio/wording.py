"""Small matters of text."""

from __future__ import annotations


def sentence(text: str) -> str:
    """A fault as a sentence: its first letter large, unless it is a symbol such as ε.

    >>> sentence("the file is empty."), sentence("ε is missing.")
    ('The file is empty.', 'ε is missing.')
    """
    return text[:1].upper() + text[1:] if text[:1].isascii() else text
