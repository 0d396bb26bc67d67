"""Changes bytes at random: flips, runs of one byte, numbers at their limits, cuts, copies, pieces of another file."""

import random  # noqa: TID251  # generators that are given, no global state
import struct

LIMITS = [0, 1, 127, 128, 255, 256, 2**15, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**64 - 1]
WORDS = [
    b"NaN",
    b"Infinity",
    b"-1",
    b"9" * 40,
    b"null",
    b"[" * 200,
    b"{}",
    b'""',
    b"\xff\xfe",
    b"\0" * 8,
    b"../",
    b"=1+2",
]
MOST_CHANGES = 6


def mutated(content: bytes, draw: random.Random, *, other: bytes) -> bytes:
    """Return the content with one change or several; most are near the beginning, where headers are."""
    found = bytearray(content)
    for _ in range(draw.randint(1, MOST_CHANGES)):
        if not found:
            return bytes(found)
        reach = len(found) if draw.random() < 0.5 else min(len(found), 512)
        place = draw.randrange(reach)
        length = draw.randint(1, max(1, min(64, len(found) - place)))
        match draw.randrange(8):
            case 0:
                found[place] ^= 1 << draw.randrange(8)
            case 1:
                found[place : place + length] = bytes([draw.randrange(256)]) * length
            case 2:
                form = draw.choice(["<B", "<H", "<I", "<Q", ">H", ">I", ">Q"])
                size = struct.calcsize(form)
                found[place : place + size] = struct.pack(form, draw.choice(LIMITS) % 256**size)
            case 3:
                del found[place : place + length]
            case 4:
                found[place:place] = found[place : place + length] * draw.randint(1, 20)
            case 5:
                del found[draw.randrange(len(found)) :]
            case 6:
                found[place : place + length] = draw.choice(WORDS)
            case _:
                start = draw.randrange(max(1, len(other)))
                found[place : place + length] = other[start : start + length]
    return bytes(found)
