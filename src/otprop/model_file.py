"""Saved models: a JSON header and arrays in one file that cannot run code when it is read.

The file is a zip archive without compression: `header.json` first, then one `.npy` member an array.
The archive's comment, which ends the file, is the SHA-256 of all bytes before it; so no byte of the
file can have changed unnoticed.
"""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import re
import secrets
import sys
import tokenize
import zipfile
from contextlib import contextmanager, suppress
from importlib import metadata
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.lib import format as npy

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

FORMAT = "otprop-model"
FORMAT_VERSION = 1

_HEADER = "header.json"
_COMMENT = hashlib.sha256().digest_size * 2  # bytes of a digest in hexadecimal
_HEADER_LIMIT = 64 * 2**20  # bytes; parsed JSON takes many times its size in memory
_BLOCK = 2**20  # bytes read at a time
_NPY_VERSION = (1, 0)
_NAME = re.compile(r"[A-Za-z0-9_]+")

_FOREIGN = "it is not a model saved by otprop. Give the path of a file written by model.save(path)."
_DAMAGED = "it is incomplete or was altered. Copy it again from where it was saved."
# What zipfile, json and numpy raise over bytes that are not as they should be.
_ZIP_ERRORS = (zipfile.BadZipFile, EOFError, OSError)
_TEXT_ERRORS = (ValueError, TypeError, SyntaxError, tokenize.TokenError, RuntimeError)


class ModelFileError(ValueError):
    """A file that is not a saved model, or not one that this otprop can read."""


def write(
    path: str | os.PathLike[str], header: Mapping[str, Any], arrays: Mapping[str, Any]
) -> None:
    """Save a header and arrays in one file, which is replaced as a whole or not at all.

    Parameters
    ----------
    path : str or path-like
        The file to write. A file that is there is replaced.
    header : mapping of str to JSON values
        Without NaN or infinity.
    arrays : mapping of str to ndarray
        Of booleans, integers, floats or fixed-width strings. The names are letters, digits and
        underscores.

    Raises
    ------
    TypeError
        If an array is of another type, or the header holds what JSON cannot.
    ValueError
        If a name has other characters, or the header holds a NaN or is too large.
    OSError
        If the file cannot be written; what was there is then as it was.
    """
    checked = {name: _checked(name, array) for name, array in arrays.items()}
    text = _header_text(header, checked)
    with replacing(path) as file:
        with zipfile.ZipFile(file, "w") as archive:
            archive.comment = b"0" * _COMMENT  # until all before it is written
            with archive.open(_member(_HEADER, len(text)), "w") as member:
                member.write(text)
            for name, array in checked.items():
                with archive.open(_member(f"{name}.npy", array.nbytes), "w") as member:
                    npy.write_array(member, array, _NPY_VERSION, allow_pickle=False)
        digest = _digest(file)
        file.seek(-_COMMENT, os.SEEK_END)
        file.write(digest)


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the header and the arrays that `write` has saved.

    Parameters
    ----------
    path : str or path-like
        A file written by `write`.

    Returns
    -------
    header : dict
    arrays : dict of str to ndarray

    Raises
    ------
    ModelFileError
        If the file is not a saved model, is incomplete or altered, or is of a newer format.
    OSError
        If the file cannot be read, as the operating system says it.
    """
    with Path(path).open("rb") as file:
        try:
            return _read(file)
        except (*_ZIP_ERRORS, *_TEXT_ERRORS) as error:
            # zipfile seeks to before the file's start where an offset is damaged, which gives
            # EINVAL; other errors of the system say what they are.
            if isinstance(error, OSError) and error.errno != errno.EINVAL:
                raise
            what = str(error) if isinstance(error, ModelFileError) else _DAMAGED
            raise ModelFileError(f"Cannot load {os.fspath(path)!r}: {what}") from error


def _checked(name: str, array: object) -> NDArray[Any]:
    if not _NAME.fullmatch(name):
        raise ValueError(f"The array name {name!r} is not of letters, digits and underscores only.")
    checked = np.asarray(array)
    if not _is_plain(checked.dtype):
        raise TypeError(
            f"Cannot save the array {name!r} of dtype {checked.dtype}: only booleans, integers, "
            "floats and fixed-width strings are read back safely."
        )
    return checked


def _is_plain(dtype: np.dtype[Any]) -> bool:
    # Elements of no bytes could be claimed in any number by a file of any size.
    return dtype.kind in "biufU" and dtype.itemsize > 0


def _header_text(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    document = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "otprop_version": metadata.version("otprop"),
        "header": dict(header),
        "arrays": {
            name: _describe(name, array.dtype, array.shape) for name, array in arrays.items()
        },
    }
    text = json.dumps(document, allow_nan=False).encode()
    if len(text) > _HEADER_LIMIT:
        raise ValueError(f"Cannot save a header of {len(text)} bytes, more than {_HEADER_LIMIT}.")
    return text


def _describe(name: str, dtype: np.dtype[Any], shape: Sequence[int]) -> dict[str, Any]:
    """Return what a model's header says of an array."""
    return {"member": f"{name}.npy", "dtype": dtype.str, "shape": list(shape)}


def _digest(file: BinaryIO) -> bytes:
    """Return the SHA-256 of all bytes of a file before the comment, as the comment has it."""
    left = file.seek(0, os.SEEK_END) - _COMMENT
    file.seek(0)
    digest = hashlib.sha256()
    while block := file.read(min(left, _BLOCK)):
        digest.update(block)
        left -= len(block)
    return digest.hexdigest().encode()


def _member(name: str, size: int) -> zipfile.ZipInfo:
    """Return a member that depends on no clock and no system, so that equal models are equal."""
    info = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
    info.create_system = 3  # Unix, whose access rights the next line holds
    info.external_attr = 0o644 << 16
    info.file_size = size  # zipfile chooses by it whether 32 bits hold the size
    return info


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a new file that takes the place of `path` once all of it is on the disk."""
    target = Path(path).resolve()  # a link stays, and what it points to is replaced
    if target.exists() and not target.is_file():
        raise OSError(errno.EISDIR, "Cannot save over a folder or a device", str(target))
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "No such folder to save in", str(target.parent))
    temporary = target.with_name(f".otprop-{secrets.token_hex(8)}.tmp")
    try:
        with temporary.open("x+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    except BaseException:  # Ctrl-C too
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


def _sync_folder(folder: Path) -> None:
    """Put the new name on the disk too, where the system can: Windows opens no folders."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _read(file: BinaryIO) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    start = file.read(30 + len(_HEADER))  # 30 bytes precede the first member's name
    if not (start.startswith(b"PK\x03\x04") and start.endswith(_HEADER.encode())):
        raise ModelFileError(_FOREIGN)
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        _check_sizes(members, os.fstat(file.fileno()).st_size)
        text = archive.read(members[0])
        header, entries = _parse(text)
        matches = _digest(file) == archive.comment == file.read()  # which is what is left
        _require(matches, "it does not match its checksum")
        listed = [_HEADER, *(f"{name}.npy" for name in entries)]
        found = [member.filename for member in members]
        _require(found == listed, "its members are not those that its header lists")
        return header, {
            name: _read_array(archive, member, name, entry)
            for member, (name, entry) in zip(members[1:], entries.items(), strict=True)
        }


def _require(holds: object, otherwise: str) -> None:
    if not holds:
        raise ModelFileError(f"{otherwise}, so {_DAMAGED}")


def _check_sizes(members: Sequence[zipfile.ZipInfo], available: int) -> None:
    """Refuse, before anything is read, what would take more memory than the file has bytes."""
    small = members and members[0].file_size <= _HEADER_LIMIT
    _require(small, f"it has no header of at most {_HEADER_LIMIT} bytes")
    for member in members:
        sizes = (zipfile.ZIP_STORED, member.file_size)
        stored = (member.compress_type, member.compress_size) == sizes
        _require(stored, f"its member {member.filename!r} is compressed")
    fits = sum(member.file_size for member in members) <= available  # false if members overlap
    _require(fits, "its members claim more bytes than the file has")


def _parse(text: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    document = json.loads(text)
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ModelFileError(_FOREIGN)
    version = document.get("format_version")
    if isinstance(version, int) and version > FORMAT_VERSION:
        raise ModelFileError(
            f"it was written by a newer otprop ({document.get('otprop_version')}) in format "
            f"{version}; this one reads format {FORMAT_VERSION}. Upgrade: pip install -U otprop."
        )
    header, entries = document.get("header"), document.get("arrays")
    if version != FORMAT_VERSION or not isinstance(header, dict) or not isinstance(entries, dict):
        raise ModelFileError(_DAMAGED)
    _require(all(map(_NAME.fullmatch, entries)), "an array has a name that otprop does not give")
    return header, entries


def _read_array(
    archive: zipfile.ZipFile, info: zipfile.ZipInfo, name: str, entry: object
) -> NDArray[Any]:
    with archive.open(info) as member:
        shape, dtype = _npy_header(member)
        _require(_is_plain(dtype), f"its array {name!r} is of the unsafe dtype {dtype}")
        # numpy allocates what the .npy header claims, so it must claim what is there.
        possible = all(0 <= length <= sys.maxsize for length in shape)
        size = member.tell() + math.prod(shape) * dtype.itemsize
        same = possible and size == info.file_size and entry == _describe(name, dtype, shape)
        _require(same, f"its array {name!r} is not the one that was saved")
        member.seek(0)
        return npy.read_array(member, allow_pickle=False)


def _npy_header(member: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    _require(npy.read_magic(member) == _NPY_VERSION, "an array is in another format")
    try:
        shape, _, dtype = npy.read_array_header_1_0(member)
    except MemoryError as error:  # Python's parser over deep nesting, not a want of memory
        raise ModelFileError(_DAMAGED) from error
    return shape, dtype
