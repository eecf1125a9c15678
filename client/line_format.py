"""How `produce -f` takes a line apart: what `consume -f` prints, read backwards.

`%k` key, `%v` value, `%p` partition; `%%` and the escapes are those of `record_format.py`. A field
ends where the text that follows it first occurs, the last one takes the rest: with `%k: %v` the
line `a: b: c` has the key `a`. Text before the first field begins the line, text after the last
one ends it. A `\\n` at the end of the format is the line's own end and says nothing more.

Of consume's other fields `%h` cannot be read back, for its commas may be a header's own; topic,
offset and time are not for a line to say (`--json` lines do bring their time).
"""

from __future__ import annotations

from dataclasses import dataclass

from .failure import ExitStatus, Failure
from .record_format import tokens

FIELDS = ("k", "v", "p")


@dataclass(frozen=True, slots=True)
class LineFormat:
    text: str
    """As it was given, for messages."""
    begin: bytes
    fields: tuple[tuple[str, bytes], ...]
    """Letters, with the text that ends each: empty at most for the last, which ends the line."""

    @classmethod
    def parse(cls, text: str) -> LineFormat:
        """Raises Failure, status 2."""
        letters: list[str] = []
        texts = [b""]  # What stands before, between and after the letters.
        for token in tokens(text):
            if isinstance(token, bytes):
                texts[-1] += token
            else:
                letters.append(token)
                texts.append(b"")
        texts[-1] = texts[-1].removesuffix(b"\n")
        if (wrong := _what_is_wrong(letters, texts)) is not None:
            raise Failure(f"format {text!r}: {wrong}", ExitStatus.USAGE)
        return cls(text, texts[0], tuple(zip(letters, texts[1:], strict=True)))

    def __contains__(self, letter: str) -> bool:
        return any(letter == name for name, _ in self.fields)

    def taken_apart(self, line: bytes) -> dict[str, bytes] | None:
        """Letters and what they stand for, or None for a line that is not of this format."""
        if not line.startswith(self.begin):
            return None
        found: dict[str, bytes] = {}
        rest = line[len(self.begin) :]
        *others, (last, end) = self.fields
        for letter, separator in others:
            found[letter], met, rest = rest.partition(separator)
            if not met:
                return None
        if not rest.endswith(end):
            return None
        found[last] = rest.removesuffix(end)
        return found


def _what_is_wrong(letters: list[str], texts: list[bytes]) -> str | None:
    known = ", ".join(f"%{name}" for name in FIELDS)
    for letter in letters:
        if letter not in FIELDS:
            return f"{'%' + letter!r} is no field of a line, those are {known}"
        if letters.count(letter) > 1:
            return f"%{letter} stands in it twice"
    if not letters:
        return f"it has none of the fields {known}; lines of JSON are read with --json"
    if not all(texts[1:-1]):
        return "without text between two fields nobody knows where the first one ends"
    if any(b"\n" in text for text in texts):
        return "a line break may only end it, for it ends every line"
    return None
