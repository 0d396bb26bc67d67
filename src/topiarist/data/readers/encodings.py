"""The encoding of a text file, told by its bytes."""

import codecs

from topiarist.data.readers.contents import TextContent
from topiarist.errors import DataError

_MARKS = (  # the longer first: the mark of UTF-32 begins with that of UTF-16
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_SAID = {
    "utf-16": "UTF-16",
    "utf-16-le": "UTF-16",
    "utf-16-be": "UTF-16",
    "utf-32": "UTF-32",
    "cp1252": "Windows-1252",
    "latin-1": "Latin-1",
}
_TEXT_CONTROLS = frozenset(b"\t\n\v\f\r\x1a\x1b")
_CONTROLS = bytes(byte for byte in range(32) if byte not in _TEXT_CONTROLS) + b"\x7f"
_UPPER_CONTROLS = bytes(range(0x80, 0xA0))  # letters in Windows-1252, and nothing in Latin-1
_SEEN = 64 * 1024  # bytes in which UTF-16 without a mark shows its zeros
_MOSTLY = 0.7  # of every second byte: text in European languages has more


def find_encoding(path: object, content: TextContent) -> str:
    """Return the name under which Python knows the encoding; raise where the bytes are no text.

    A byte order mark decides; then zeros in every second place; then UTF-8, which other encodings are hardly ever by
    chance. What is left is taken as Windows-1252 or, where that has no such letters, as Latin-1.
    """
    head = next(content.blocks())
    marked = next((encoding for mark, encoding in _MARKS if head.startswith(mark)), None)
    found = marked or _without_mark(head, content)
    if found is not None and _decodes(content, found):
        return found
    if found is None and _decodes(content, "utf-8"):
        return "utf-8"
    if found is not None or any(len(block.translate(None, _CONTROLS)) < len(block) for block in content.blocks()):
        raise DataError(f"{path} is not text: a table is text with a header line")
    if any(len(block.translate(None, _UPPER_CONTROLS)) < len(block) for block in content.blocks()):
        return "cp1252" if _decodes(content, "cp1252") else "latin-1"
    return "latin-1"


def _without_mark(head: bytes, content: TextContent) -> str | None:
    if not any(b"\0" in block for block in content.blocks()):
        return None
    seen = head[:_SEEN]
    zeros = [half.count(0) / max(len(half), 1) for half in (seen[::2], seen[1::2])]
    if zeros[1] > _MOSTLY and not zeros[0]:
        return "utf-16-le"
    return "utf-16-be" if zeros[0] > _MOSTLY and not zeros[1] else "binary"


def _decodes(content: TextContent, encoding: str) -> bool:
    try:
        decoder = codecs.getincrementaldecoder(encoding)()
        for block in content.blocks():
            decoder.decode(block)
        decoder.decode(b"", final=True)
    except (UnicodeDecodeError, LookupError):
        return False
    return True


def encoding_notes(encoding: str) -> list[str]:
    """Note an encoding that is not UTF-8."""
    if encoding not in _SAID:
        return []
    guessed = "; if letters are wrong, save it as UTF-8" if encoding in ("cp1252", "latin-1") else ""
    return [f"not UTF-8: read as {_SAID[encoding]}{guessed}"]
