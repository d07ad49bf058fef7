"""The formats in which data sets are published: bytes in, tables out."""

from __future__ import annotations

import gzip
import io
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from otprop.datasets.table import Table, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_GZIP, _LZW = b"\x1f\x8b", b"\x1f\x9d"
_CLEAR = 256  # the LZW code that empties the dictionary
_UNSIGNED_BYTES = 8  # the type of values, in the header of an idx file


def unpacked(data: bytes) -> bytes:
    """Undo gzip or the Unix `compress`; a file that is neither stays as it is.

    Its first bytes tell, for some servers unpack on the way what others send packed.
    """
    if data.startswith(_GZIP):
        return gzip.decompress(data)
    return _lzw(data) if data.startswith(_LZW) else data


def delimited(
    parts: Sequence[bytes],
    columns: Sequence[str],
    *,
    separator: str = ",",
    target: int = -1,
    without: Sequence[int] = (),
    rows: int | None = None,
) -> Table:
    """Read lines of values, one an object, without a header.

    `target` is the label's place in the line, `without` are those of what is left out; `rows` says
    how many to keep. Parts follow one another.
    """
    # NumPy makes the numbers of the text: older pandas may miss the nearest one by a bit.
    frames = [
        pd.read_csv(io.BytesIO(part), sep=separator, header=None, dtype=object) for part in parts
    ]
    whole = pd.concat(frames, ignore_index=True)[:rows]
    label = whole.columns[target]
    features = whole.drop(columns=[label, *without]).astype(float)
    return table(features.set_axis(list(columns), axis=1), whole[label])


def idx(parts: Sequence[bytes], columns: Sequence[str]) -> Table:
    """Read MNIST's files: images and labels for training, images and labels for the test."""
    arrays = [_idx_array(part) for part in parts]
    images = np.concatenate([a.reshape(len(a), -1) for a in arrays[::2]])
    return table(pd.DataFrame(images, columns=list(columns)), np.concatenate(arrays[1::2]))


def _idx_array(data: bytes) -> NDArray[Any]:
    if len(data) < 4 or data[:3] != bytes((0, 0, _UNSIGNED_BYTES)):  # noqa: PLR2004 - the header
        raise ValueError("it is not an idx file of unsigned bytes")
    dimensions = data[3]
    shape = np.frombuffer(data, ">u4", dimensions, offset=4)
    return np.frombuffer(data, np.uint8, offset=4 + 4 * dimensions).reshape(shape)


def _lzw(data: bytes) -> bytes:
    """Undo the Unix `compress`: two of UCI's originals exist in no other form (.Z).

    No library that the project has reads it, and it is shorter than caring for one more that does.
    Codes are packed with the lowest bit first, in groups of eight: as many bytes as a code has
    bits. Where codes become longer, or the dictionary is emptied, the rest of a group is void.
    """
    longest, clears = data[2] & 31, data[2] >= 128  # noqa: PLR2004 - bits of the third byte
    start = [bytes([byte]) for byte in range(256)] + [b""] * clears
    words, width, last = start.copy(), 9, b""
    out = []
    position = 3
    while position < len(data):
        group = data[position : position + width]
        position += width
        bits = int.from_bytes(group, "little")
        for _ in range(len(group) * 8 // width):
            code, bits = bits & ((1 << width) - 1), bits >> width
            if clears and code == _CLEAR:
                words, width, last = start.copy(), 9, b""
                break
            if code > len(words) or (code == len(words) and not last):
                raise ValueError("it is not what `compress` writes: a code has no meaning")
            # A code that is only now being made stands for the last word and its first byte.
            word = words[code] if code < len(words) else last + last[:1]
            out.append(word)
            if last and len(words) < 1 << longest:
                words.append(last + word[:1])
            last = word
            if len(words) == 1 << width and width < longest:
                width += 1
                break
    return b"".join(out)
