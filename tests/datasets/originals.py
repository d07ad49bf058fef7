"""The files that data sets were published as, rebuilt from tables; and what unpacks, reversed."""

import numpy as np


def lines(frame, target, *, at=-1, separator=",", missing="?"):
    """Lines of values without a header, the label at place `at`."""
    whole = frame.copy()
    whole.insert(at % (whole.shape[1] + 1), "label", target)
    return whole.to_csv(sep=separator, header=False, index=False, na_rep=missing).encode()


def halves(frame, target, rows, **how):
    return [
        lines(frame[:rows], target[:rows], **how),
        lines(frame[rows:], target[rows:], **how),
    ]


def idx(array):
    """An array of unsigned bytes as MNIST's files hold it."""
    header = bytes((0, 0, 8, array.ndim)) + np.array(array.shape, ">u4").tobytes()
    return header + array.tobytes()


def mnist(images, labels, training):
    """The four files."""
    images = images.reshape(-1, 28, 28)
    parts = (slice(None, training), slice(training, None))
    return [idx(array[part]) for part in parts for array in (images, labels)]


def compress(data, *, longest=16, clears=True, clear_after=None):
    """What the Unix program `compress` writes; it empties its dictionary after so many codes."""
    first = 257 if clears else 256
    out = bytearray((0x1F, 0x9D, longest | (0x80 if clears else 0)))
    group, width, size, known = [], 9, first, 0  # size: of the dictionary of who unpacks

    def flush(*, whole):
        bits = sum(code << (i * width) for i, code in enumerate(group))
        out.extend(bits.to_bytes(width if whole else -(-len(group) * width // 8), "little"))
        group.clear()

    words = {bytes([byte]): byte for byte in range(256)}
    position = 0
    while position < len(data):
        end = position + 1
        while end < len(data) and data[position : end + 1] in words:
            end += 1
        group.append(words[data[position:end]])
        if len(words) + first - 256 < 1 << longest:
            words[data[position : end + 1]] = len(words) + first - 256
        size += known > 0 and size < 1 << longest
        known += 1
        position = end
        if size == 1 << width and width < longest:
            flush(whole=True)
            width += 1
        elif len(group) == 8:
            flush(whole=True)
        if known == clear_after:
            group.append(256)
            flush(whole=True)
            words = {bytes([byte]): byte for byte in range(256)}
            width, size, known = 9, first, 0
    flush(whole=False)
    return bytes(out)


def isolet(frame, target):
    """Speaker by speaker, and further speakers after them."""
    spoken = np.random.default_rng(0).permutation(len(frame))
    text = lines(frame.iloc[spoken], [f"{label}." for label in target[spoken]])
    return [text + lines(frame.assign(x0=0.125)[:30], target[:30])]


# By a data set's name, what makes its files' contents at UCI of the table in the offline file.
PUBLISHED = {
    "iris": lambda frame, target: [lines(frame, target) + b"\n"],
    "wine": lambda frame, target: [lines(frame, target, at=0)],
    "heart": lambda frame, target: [lines(frame, target, separator=" ")],
    "ionosphere": lambda frame, target: [lines(frame, target)],
    "dermatology": lambda frame, target: [lines(frame, target)],
    "wdbc": lambda frame, target: [lines(frame, target, at=1)],
    "wdbc-leaky": lambda frame, target: [lines(frame, target, at=1)],
    "isolet": isolet,
    "waveform": lambda frame, target: [compress(lines(frame, target))],
    "optdigits": lambda frame, target: halves(frame, target, len(frame) * 3823 // 5620),
    "satimage": lambda frame, target: halves(
        frame, target, len(frame) * 4435 // 6435, separator=" "
    ),
}
