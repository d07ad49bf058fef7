"""Saved models: a JSON header and arrays in one file that cannot run code when it is read.

The file is a zip archive without compression: `header.json` first, then one `.npy` member an array.
The header holds the SHA-256 of every array, and the archive's comment, which ends the file, that of
the header; so nothing that is read can have changed unnoticed.
"""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import re
import secrets
import shutil
import struct
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
_HEADER_LIMIT = 64 * 2**20  # bytes; parsed JSON takes many times its size in memory
_NPY_VERSION = (1, 0)
_NAME = re.compile(r"[A-Za-z0-9_]+")

_FOREIGN = "it is not a model saved by otprop. Give the path of a file written by model.save(path)."
_DAMAGED = (
    "it is incomplete or has been altered. Copy it again from where it was saved, or save the "
    "model again."
)
# What zipfile, json and numpy raise over bytes that are not as they should be. ValueError includes
# ModelFileError, RuntimeError RecursionError.
_PARSE_ERRORS = (zipfile.BadZipFile, tokenize.TokenError, struct.error, EOFError, OverflowError)
_PARSE_ERRORS += (RuntimeError, SyntaxError, TypeError, ValueError)


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
        If an array's name has other characters, or the header is too large or has a NaN.
    OSError
        If the file cannot be written; the file that was there is then as it was.
    """
    checked = {name: _checked(name, array) for name, array in arrays.items()}
    text = _header_text(header, checked)
    with _replacing(path) as file, zipfile.ZipFile(file, "w") as archive:
        archive.comment = _sha256(text)
        with archive.open(_member(_HEADER, len(text)), "w") as member:
            member.write(text)
        for name, array in checked.items():
            with archive.open(_member(f"{name}.npy", array.nbytes), "w") as member:
                npy.write_array(member, array, _NPY_VERSION, allow_pickle=False)


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
        If the file cannot be opened, as the operating system says it.
    """
    with Path(path).open("rb") as file:
        try:
            return _read(file)
        except _PARSE_ERRORS as error:
            what = str(error) if isinstance(error, ModelFileError) else _DAMAGED
            raise ModelFileError(f"Cannot load {os.fspath(path)!r}: {what}") from error


def _checked(name: str, array: object) -> NDArray[Any]:
    if not _NAME.fullmatch(name):
        raise ValueError(
            f"Cannot save an array named {name!r}: use letters, digits and underscores."
        )
    checked = np.asarray(array)
    if not _is_plain(checked.dtype):
        raise TypeError(
            f"Cannot save the array {name!r} of dtype {checked.dtype}: only booleans, integers, "
            "floats and fixed-width strings can be read back safely."
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
        "arrays": {name: _describe(name, array) for name, array in arrays.items()},
    }
    text = json.dumps(document, allow_nan=False, indent=1).encode()
    if len(text) > _HEADER_LIMIT:
        raise ValueError(
            f"Cannot save a header of {len(text)} bytes: the limit is {_HEADER_LIMIT}. Put long "
            "columns into arrays."
        )
    return text


def _describe(name: str, array: NDArray[Any]) -> dict[str, Any]:
    digest = _Digest()
    npy.write_array(digest, array, _NPY_VERSION, allow_pickle=False)
    return _entry(name, array.dtype, array.shape, digest)


def _entry(
    name: str, dtype: np.dtype[Any], shape: Sequence[int], digest: _Digest
) -> dict[str, Any]:
    return {
        "member": f"{name}.npy",
        "dtype": dtype.str,
        "shape": list(shape),
        "size": digest.size,
        "sha256": digest.sha256.hexdigest(),
    }


class _Digest:
    """A file to write to that keeps only the size and the SHA-256 of what was written."""

    def __init__(self) -> None:
        self.sha256 = hashlib.sha256()
        self.size = 0

    def write(self, data: bytes) -> None:
        self.sha256.update(data)
        self.size += len(data)


def _sha256(data: bytes) -> bytes:
    return hashlib.sha256(data).hexdigest().encode()


def _member(name: str, size: int) -> zipfile.ZipInfo:
    """Return a member that depends on no clock and no system, so that equal models are equal."""
    info = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
    info.create_system = 3  # Unix, whose access rights the next line holds
    info.external_attr = 0o644 << 16
    info.file_size = size  # zipfile chooses by it whether 32 bits hold the size
    return info


@contextmanager
def _replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a new file that takes the place of `path` once all of it is on the disk."""
    target = Path(path).resolve()  # a link stays, and what it points to is replaced
    if target.exists() and not target.is_file():
        code = errno.EISDIR if target.is_dir() else errno.EEXIST
        raise OSError(code, "Cannot save a model over a folder or a device", str(target))
    temporary = target.with_name(f".otprop-{secrets.token_hex(8)}.tmp")
    try:
        with _create(temporary) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    except BaseException:  # Ctrl-C too
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


def _create(path: Path) -> BinaryIO:
    try:
        return path.open("xb")
    except FileNotFoundError:
        raise FileNotFoundError(
            errno.ENOENT, "The folder to save the model in does not exist", str(path.parent)
        ) from None


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
        file.seek(-len(_sha256(text)), os.SEEK_END)
        _require(file.read() == _sha256(text), "its header does not match its checksum")
        names = [_HEADER, *(f"{name}.npy" for name in entries)]
        listed = [member.filename for member in members] == names
        _require(listed, "its members are not those that its header lists")
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
        stored = member.compress_type == zipfile.ZIP_STORED
        stored = stored and member.file_size == member.compress_size
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
    whole = version == FORMAT_VERSION and isinstance(header, dict) and isinstance(entries, dict)
    _require(whole, "its header is not as otprop writes it")
    _require(all(map(_NAME.fullmatch, entries)), "an array has a name that otprop does not give")
    return header, entries


def _read_array(
    archive: zipfile.ZipFile, info: zipfile.ZipInfo, name: str, entry: object
) -> NDArray[Any]:
    with archive.open(info) as member:
        digest = _Digest()
        shutil.copyfileobj(member, digest)
        member.seek(0)
        _require(npy.read_magic(member) == _NPY_VERSION, f"its array {name!r} is in another format")
        shape, dtype = _npy_header(member)
        _require(_is_plain(dtype), f"its array {name!r} is of the unsafe dtype {dtype}")
        # numpy allocates what the .npy header claims, so it must claim what is there.
        size = member.tell() + math.prod(shape) * dtype.itemsize
        same = size == digest.size and entry == _entry(name, dtype, shape, digest)
        _require(same, f"its array {name!r} is not the one that was saved")
        member.seek(0)
        return npy.read_array(member, allow_pickle=False)


def _npy_header(member: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    try:
        shape, _, dtype = npy.read_array_header_1_0(member)
    except MemoryError as error:  # Python's parser over deep nesting, not a want of memory
        raise ModelFileError(_DAMAGED) from error
    return shape, dtype
