"""A saved model comes back as it was, or not at all; and saving never harms what was there."""

import errno
import hashlib
import io
import json
import os
import pickle
import re
import signal
import stat
import subprocess
import sys
import tempfile
import zipfile
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.lib import format as npy

from otprop import model_file
from otprop.model_file import ModelFileError, read, write

HEADER = {"alpha": 0.9, "names": ["a", "ü\ud800"], "none": None, "deep": {"list": [1, [2]]}}
ARRAYS = {
    "weights": np.arange(6, dtype=np.float32).reshape(2, 3),
    "classes_": np.array(["ja", "né"]),
}

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    # JSON gives one name twice where two lone surrogates make a pair.
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda values: st.lists(values, max_size=3) | st.dictionaries(st.text(max_size=3), values),
    max_leaves=5,
)
plain_dtypes = (
    hnp.boolean_dtypes()
    | hnp.integer_dtypes()
    | hnp.unsigned_integer_dtypes()
    | hnp.floating_dtypes()
    | hnp.unicode_string_dtypes(min_len=1, max_len=4)
)
shapes = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)


def same(one, other):
    """Compare bit for bit, since NaN is not NaN, and in memory order, which BLAS can feel."""
    return (one.dtype, one.shape, one.flags.f_contiguous) == (
        other.dtype,
        other.shape,
        other.flags.f_contiguous,
    ) and one.tobytes() == other.tobytes()


def contents(path):
    header, arrays = read(path)
    return header, {name: (a.dtype.str, a.shape, a.tobytes()) for name, a in arrays.items()}


def refusal(path):
    """Return what `read` says of a file it refuses, after the file's name, which must be there."""
    with pytest.raises(ModelFileError) as caught:
        read(path)
    start = f"Cannot load {str(path)!r}: "
    assert str(caught.value).startswith(start)
    return str(caught.value).removeprefix(start)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.otprop"


@pytest.fixture
def saved(path):
    write(path, HEADER, ARRAYS)
    return path


class TestRoundTrip:
    @given(
        st.dictionaries(st.text(max_size=5), json_values, max_size=3),
        st.dictionaries(
            st.from_regex(r"[A-Za-z0-9_]{1,8}", fullmatch=True),
            hnp.arrays(plain_dtypes, shapes),
            max_size=3,
        ),
        st.sampled_from("CF"),
    )
    def test_all_that_may_be_saved_comes_back(self, header, arrays, order):
        arrays = {name: np.array(array, order=order) for name, array in arrays.items()}
        with tempfile.TemporaryDirectory() as folder:
            write(f"{folder}/model", header, arrays)
            header_read, arrays_read = read(f"{folder}/model")
        assert header_read == header
        assert list(arrays_read) == list(arrays)
        assert all(same(arrays_read[name], array) for name, array in arrays.items())

    @pytest.mark.parametrize(
        "array",
        [
            np.array(3.5),
            np.zeros((0, 7)),
            np.zeros((2**40, 0), bool),
            np.arange(12.0).reshape(3, 4)[::2, ::-1],
            np.arange(3, dtype=">i4"),
            np.array(["\ud800", ""], dtype=">U3"),
            np.broadcast_to(1.0, (3, 2)),
            np.arange(200_000.0),  # more than is read or written at a time
        ],
        ids=repr,
    )
    def test_unusual_arrays_come_back(self, path, array):
        write(path, {}, {"a": array})
        back = read(path)[1]["a"]
        assert (back.dtype, back.shape) == (array.dtype, array.shape)
        assert back.tobytes() == array.tobytes()
        assert back.flags.writeable

    def test_the_path_may_be_text_or_a_path(self, path):
        write(str(path), HEADER, ARRAYS)
        assert contents(str(path)) == contents(path)

    def test_every_zip_and_npy_reader_can_open_it(self, saved):
        with zipfile.ZipFile(saved) as archive:
            assert archive.testzip() is None
            assert archive.namelist() == ["header.json", "weights.npy", "classes_.npy"]
            assert {info.date_time for info in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
            assert {info.external_attr >> 16 for info in archive.infolist()} == {0o644}
            header = json.loads(archive.read("header.json"))
            entry = header["arrays"]["weights"]
            member = archive.read(entry["member"])
            checksum = archive.comment
        assert (header["format"], header["format_version"]) == ("otprop-model", 1)
        assert header["otprop_version"]
        assert entry == {"member": "weights.npy", "dtype": "<f4", "shape": [2, 3]}
        assert checksum.decode() == hashlib.sha256(saved.read_bytes()[:-64]).hexdigest()
        assert np.array_equal(np.load(io.BytesIO(member)), ARRAYS["weights"])

    def test_the_same_model_gives_the_same_bytes(self, tmp_path, monkeypatch):
        write(tmp_path / "a", HEADER, ARRAYS)
        monkeypatch.setattr("time.time", lambda: 2e9)
        monkeypatch.setattr("sys.platform", "win32")
        write(tmp_path / "b", HEADER, ARRAYS)
        assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()

    @pytest.mark.parametrize(
        "array",
        [
            np.array([{}], dtype=object),
            np.array([1j]),
            np.array([b"x"]),
            np.array(["2020"], dtype="M8[D]"),
            np.zeros(2, dtype=[("a", "f8")]),
            np.zeros(2, dtype="V3"),
            np.ndarray((3,), dtype="U0"),  # of no bytes, which only this way of making it keeps
        ],
        ids=lambda array: str(array.dtype),
    )
    def test_no_other_array_is_saved(self, saved, array):
        before = saved.read_bytes()
        with pytest.raises(TypeError, match="'odd'"):
            write(saved, HEADER, {"odd": array})
        assert saved.read_bytes() == before

    @pytest.mark.parametrize("name", ["", "a/b", "..", "a\\b", "a.b", "é", "a\0"])
    def test_no_other_name_is_saved(self, path, name):
        with pytest.raises(ValueError, match="name"):
            write(path, {}, {name: np.zeros(1)})
        assert not path.exists()

    @pytest.mark.parametrize(
        ("value", "error"), [(float("nan"), ValueError), (np.float32(1), TypeError)], ids=repr
    )
    def test_no_other_header_is_saved(self, path, value, error):
        with pytest.raises(error):
            write(path, {"value": value}, {})
        assert not path.exists()

    def test_no_header_is_saved_that_would_not_be_read(self, path, monkeypatch):
        monkeypatch.setattr(model_file, "_HEADER_LIMIT", 500)
        with pytest.raises(ValueError, match="header of"):
            write(path, {"long": "x" * 500}, {})
        assert not path.exists()


class TestDamage:
    """All bytes are under a checksum, or are the checksum."""

    @pytest.mark.parametrize("change", [0x01, 0x20, 0xFF])
    def test_no_file_with_a_changed_byte_is_read(self, saved, change):
        whole = saved.read_bytes()
        for place, byte in enumerate(whole):
            saved.write_bytes(whole[:place] + bytes([byte ^ change]) + whole[place + 1 :])
            refusal(saved)

    def test_no_missing_byte_changes_what_is_read(self, saved):
        whole = saved.read_bytes()
        for place in range(len(whole)):
            saved.write_bytes(whole[:place] + whole[place + 1 :])
            refusal(saved)

    def test_no_file_cut_short_is_read(self, saved):
        whole = saved.read_bytes()
        for length in range(len(whole)):
            saved.write_bytes(whole[:length])
            assert ("incomplete" if length >= 41 else "not a model") in refusal(saved)

    @pytest.mark.parametrize("more", [b"\0", b"PK\x05\x06" + bytes(18)])
    def test_no_file_with_more_at_its_end_is_read(self, saved, more):
        saved.write_bytes(saved.read_bytes() + more)
        refusal(saved)

    def test_no_file_with_more_at_its_start_is_read(self, saved):
        saved.write_bytes(b"#!/bin/sh\n" + saved.read_bytes())
        assert "not a model" in refusal(saved)

    def test_two_models_are_not_mixed(self, saved, tmp_path):
        other = tmp_path / "other"
        write(other, HEADER, {**ARRAYS, "weights": ARRAYS["weights"] + 1})
        mine, theirs = (member_bytes(path, "weights.npy") for path in (saved, other))
        saved.write_bytes(saved.read_bytes().replace(mine, theirs))
        assert "does not match its checksum" in refusal(saved)

    @pytest.mark.parametrize("size", [1, 2**20 - 64, 2**20, 2**20 + 64, 3 * 2**20 + 1])
    def test_the_checksum_is_that_of_all_bytes_of_a_large_file_too(self, path, size):
        write(path, {}, {"a": np.arange(size, dtype=np.uint8)})
        whole = path.read_bytes()
        assert whole[-64:].decode() == hashlib.sha256(whole[:-64]).hexdigest()
        assert read(path)[1]["a"].size == size

    def test_a_file_that_becomes_shorter_while_it_is_read_is_refused(self, path, monkeypatch):
        write(path, {}, {"a": np.ones(10**6)})
        check_sizes = model_file._check_sizes

        def cut_after(*args):
            check_sizes(*args)
            os.truncate(path, 5 * 10**6)

        monkeypatch.setattr(model_file, "_check_sizes", cut_after)
        refusal(path)


def member_bytes(path, name):
    with zipfile.ZipFile(path) as archive:
        return archive.read(name)


def forge(path, *, document=None, members=None, extra=(), compression=zipfile.ZIP_STORED):
    """Write the file again with other contents, and with checksums that are right."""
    with zipfile.ZipFile(path) as archive:
        old = {name: archive.read(name) for name in archive.namelist()}
    old |= members or {}
    text = old.pop("header.json")
    if document is not None:
        parsed = json.loads(text)
        document(parsed)
        text = json.dumps(parsed).encode()
    raw_forge(path, [("header.json", text), *old.items(), *extra], compression)


def raw_forge(path, members, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.comment = bytes(64)
        for name, data in members:
            archive.writestr(zipfile.ZipInfo(name), data, compression)
    seal(path, path.read_bytes())


def seal(path, whole):
    """Write bytes with a checksum that is right."""
    path.write_bytes(whole[:-64] + hashlib.sha256(whole[:-64]).hexdigest().encode())


def forge_array(path, data, **entry):
    """Put other bytes in the place of an array, listed as they are but for `entry`."""

    def document(parsed):
        parsed["arrays"]["weights"] |= entry

    forge(path, document=document, members={"weights.npy": data})


def npy_bytes(text, data=b"", version=b"\x01\x00"):
    header = text.encode("latin1")
    return b"\x93NUMPY" + version + len(header).to_bytes(2, "little") + header + data


def npy_header(descr="'<f8'", shape="(2,)"):
    return f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}}}"


class Bomb:
    """Unpickled, it makes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


class TestHostileFiles:
    def test_the_forger_forges_a_file_that_is_read_if_it_changes_nothing(self, saved):
        expected = contents(saved)
        forge(saved, document=lambda _: None)
        assert contents(saved) == expected
        forge_array(saved, member_bytes(saved, "weights.npy"))
        assert contents(saved) == expected

    @pytest.mark.parametrize("as_npy", [True, False])
    def test_no_pickle_is_loaded(self, saved, tmp_path, as_npy):
        pickled = pickle.dumps(Bomb(tmp_path / "boom"))
        data = npy_bytes(npy_header("'|O'", "()"), pickled) if as_npy else pickled
        forge_array(saved, data, dtype="|O", shape=[])
        refusal(saved)
        assert not (tmp_path / "boom").exists()

    @pytest.mark.parametrize(
        ("shape", "size"),
        [
            ((2**63 - 1,), 16),
            ((2**60, 16), 0),  # 2**67 bytes, which are 0 in 64 bits
            ((-1, -2), 16),
            ((1,), 16),  # fewer than there are
            ((0, -1), 0),
            ((0, 2**63), 0),
            ((0, 10**30), 0),
            ((0, 2**62, 2**62), 0),
        ],
        ids=str,
    )
    def test_no_shape_is_believed_that_the_bytes_do_not_bear_out(self, saved, shape, size):
        data = npy_bytes(npy_header(shape=shape), bytes(size))
        forge_array(saved, data, dtype="<f8", shape=list(shape))
        refusal(saved)

    @pytest.mark.parametrize("descr", ["'<U0'", "'|S8'", "'<c16'", "'|V8'", "[('a', '<f8')]", "3"])
    def test_no_other_dtype_is_read(self, saved, descr):
        forge_array(
            saved, npy_bytes(npy_header(descr), bytes(32)), dtype=descr.strip("'"), shape=[2]
        )
        refusal(saved)

    @pytest.mark.parametrize(
        "text",
        [
            "-" * 9000 + "1",
            "(" * 9000,
            "1+" * 4000 + "1",
            "9" * 9000,
            " " * 20000,
            "   x\n y",
            "{1: 2, []: 3}",
            "__import__('os')",
            "\0",
            "",
        ],
        ids=lambda text: text[:8],
    )
    def test_no_npy_header_is_read_that_numpy_does_not_write(self, saved, text):
        forge_array(saved, npy_bytes(text, bytes(16)))
        refusal(saved)

    @pytest.mark.parametrize("data", [b"", b"\x93NUM", b"\x93NUMPY\x01\x00\xff\xff{"])
    def test_no_member_is_read_that_is_no_array(self, saved, data):
        forge_array(saved, data)
        refusal(saved)

    def test_no_other_npy_version_is_read(self, saved):
        out = io.BytesIO()
        npy.write_array(out, ARRAYS["weights"], version=(2, 0))
        forge_array(saved, out.getvalue())
        assert "another format" in refusal(saved)

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("dtype", "<f8"),
            ("shape", [3, 2]),
            ("size", 1),
            ("member", "classes_.npy"),
        ],
    )
    def test_no_array_is_read_of_which_the_header_says_something_else(self, saved, field, value):
        forge_array(saved, member_bytes(saved, "weights.npy"), **{field: value})
        assert "'weights' is not the one" in refusal(saved)

    @pytest.mark.parametrize("entry", [None, 3, [], "x", {}])
    def test_no_entry_is_read_that_does_not_describe_an_array(self, saved, entry):
        forge(saved, document=lambda parsed: parsed["arrays"].update(weights=entry))
        refusal(saved)

    def test_no_compressed_bomb_is_inflated(self, saved):
        zeros = npy_bytes(npy_header(shape="(1250000,)"), bytes(10**7))
        forge(saved, members={"weights.npy": zeros}, compression=zipfile.ZIP_DEFLATED)
        assert saved.stat().st_size < 10**5
        assert "is compressed" in refusal(saved)

    def test_no_more_is_read_than_the_file_has(self, saved):
        whole = bytearray(saved.read_bytes())
        place = whole.index(b"PK\x01\x02", whole.index(b"PK\x01\x02") + 1)
        claimed = len(whole).to_bytes(4, "little")
        whole[place + 20 : place + 28] = claimed * 2
        seal(saved, whole)
        assert "claim more bytes" in refusal(saved)

    @pytest.mark.filterwarnings("ignore:Duplicate name")
    @pytest.mark.parametrize("name", ["weights.npy", "header.json", "more.npy", "evil.py"])
    def test_no_member_is_read_that_the_header_does_not_list(self, saved, name):
        forge(saved, extra=[(name, b"x")])
        assert "members are not those" in refusal(saved)

    def test_no_array_is_missing(self, saved):
        raw_forge(saved, [("header.json", member_bytes(saved, "header.json"))])
        assert "members are not those" in refusal(saved)

    @pytest.mark.parametrize("name", ["../evil", "/evil", "a\\b", "", "."])
    def test_no_name_is_read_that_could_leave_a_folder(self, saved, name):
        def document(parsed):
            parsed["arrays"] = {name: parsed["arrays"]["weights"] | {"member": f"{name}.npy"}}

        text = json.loads(member_bytes(saved, "header.json"))
        document(text)
        data = member_bytes(saved, "weights.npy")
        raw_forge(saved, [("header.json", json.dumps(text).encode()), (f"{name}.npy", data)])
        assert "name" in refusal(saved)

    @pytest.mark.parametrize(
        "text",
        [
            b"[" * 10**6,
            b'{"a":' * 10**5,
            b"\xff",
            b"",
            b"9" * 5000,
            b'{"format": "otprop-model", "format_version": 1, "header": {}}',
            b'{"format": "otprop-model", "format_version": 1, "header": 1, "arrays": {}}',
            b'{"format": "otprop-model", "format_version": 1, "header": {}, "arrays": []}',
            b'{"format": "otprop-model", "format_version": "2", "header": {}, "arrays": {}}',
            b'{"format": "otprop-model", "format_version": 0, "header": {}, "arrays": {}}',
            b'{"format": "otprop-model", "header": {}, "arrays": {}}',
        ],
        ids=lambda text: repr(text[-40:]),
    )
    def test_no_header_is_read_that_otprop_does_not_write(self, path, text):
        raw_forge(path, [("header.json", text)])
        assert "altered" in refusal(path)

    def test_no_huge_header_is_read(self, saved, monkeypatch):
        size = len(member_bytes(saved, "header.json"))
        monkeypatch.setattr(model_file, "_HEADER_LIMIT", size)
        read(saved)
        monkeypatch.setattr(model_file, "_HEADER_LIMIT", size - 1)
        assert "header" in refusal(saved)

    def test_no_archive_without_members_is_read(self, path):
        start = b"PK\x03\x04" + bytes(26) + b"header.json"
        path.write_bytes(
            start + b"PK\x05\x06" + bytes(12) + len(start).to_bytes(4, "little") + bytes(2)
        )
        refusal(path)

    def test_no_encrypted_member_is_read(self, saved):
        whole = saved.read_bytes()
        for place in (i for i in range(len(whole)) if whole[i : i + 4] == b"PK\x01\x02"):
            whole = whole[: place + 8] + b"\x01" + whole[place + 9 :]
        seal(saved, whole)
        refusal(saved)

    def test_no_newer_format_is_read(self, saved):
        forge(saved, document=lambda parsed: parsed.update(format_version=2, otprop_version="9.1"))
        assert re.search(r"newer otprop \(9\.1\).*format 1.*[Uu]pgrade", refusal(saved))


class TestForeignFiles:
    @pytest.mark.parametrize(
        "data",
        [b"", b"x", b"header.json", bytes(10**5), pickle.dumps([1]), b"PK\x05\x06" + bytes(18)],
        ids=lambda data: repr(data[:10]),
    )
    def test_what_is_no_zip_is_refused(self, path, data):
        path.write_bytes(data)
        assert "not a model saved by otprop" in refusal(path)

    def test_an_npz_is_refused(self, tmp_path):
        path = tmp_path / "arrays.npz"
        np.savez(path, **ARRAYS)
        assert "not a model saved by otprop" in refusal(path)

    @pytest.mark.parametrize("text", [b"{}", b"[]", b"null", b'{"format": "other"}'])
    @pytest.mark.parametrize("first", ["header.json", "[Content_Types].xml"])
    def test_another_zip_is_refused(self, path, first, text):
        raw_forge(path, [(first, text), ("word/document.xml", b"<xml/>")])
        assert "not a model saved by otprop" in refusal(path)

    def test_what_the_system_refuses_is_left_as_it_says(self, tmp_path):
        with pytest.raises(FileNotFoundError):
            read(tmp_path / "none")
        with pytest.raises((IsADirectoryError, PermissionError)):
            read(tmp_path)

    def test_an_error_of_the_disk_is_no_error_of_the_file(self, saved, monkeypatch):
        def broken(*_args, **_options):
            raise OSError(errno.EIO, "Input/output error")

        monkeypatch.setattr(npy, "read_array", broken)
        with pytest.raises(OSError, match="Input/output"):
            read(saved)

    def test_want_of_memory_is_no_error_of_the_file(self, saved, monkeypatch):
        def broken(*_args, **_options):
            raise MemoryError

        monkeypatch.setattr(npy, "read_array", broken)
        with pytest.raises(MemoryError):
            read(saved)


@contextmanager
def everyday_user():
    """Be someone whom access rights bind, whose id is given, even where root runs the tests."""
    if os.geteuid() != 0:
        yield os.geteuid()
        return
    try:
        os.seteuid(65534)
        yield 65534
    finally:
        os.seteuid(0)


def run_script(script, path):
    """Run Python, with `path` as its argument, in a process of its own."""
    return subprocess.run(  # noqa: S603 - the script is in this file
        [sys.executable, "-c", script, str(path)], check=False, capture_output=True, text=True
    )


# Each process dies in the middle of the array, before the checksum is written, before the file is
# synced, or before it is renamed.
KILLED = """
import os, signal, sys
import numpy as np
from numpy.lib import format as npy
from otprop import model_file

def die(*args, **options):
    os.kill(os.getpid(), signal.SIGKILL)

def write_some_and_die(file, *args, **options):
    file.write(bytes(10**6))
    die()

array = np.ones(10**6)
for module, name, fatal in (
    (npy, "write_array", write_some_and_die),
    (model_file, "_digest", die),
    (os, "fsync", die),
    (os, "replace", die),
):
    child = os.fork()
    if child == 0:
        setattr(module, name, fatal)
        model_file.write(sys.argv[1], {}, {"a": array})
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""

# To a process whose files may not grow, the disk is full: within the header, the array, the last
# bytes of the array and the list of members.
FULL_DISK = """
import errno, resource, sys
import numpy as np
from otprop import model_file

for limit in (100, 10_000, 8_000_300, 8_000_420):
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    try:
        model_file.write(sys.argv[1], {}, {"a": np.ones(10**6)})
    except OSError as error:
        code = errno.errorcode[error.errno]
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    print(code)
    del code
"""


class TestAtomicity:
    @pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left"), KeyboardInterrupt()])
    @pytest.mark.parametrize(
        "place",
        [
            "os.fsync",
            "otprop.model_file._digest",
            "os.replace",
            "numpy.lib.format.write_array",
            "zipfile.ZipFile._write_end_record",
        ],
    )
    @pytest.mark.parametrize("new", [True, False])
    def test_a_failure_leaves_what_was_there(self, path, monkeypatch, place, error, new):
        if not new:
            write(path, HEADER, ARRAYS)
        before = None if new else path.read_bytes()

        def fail(*_args, **_options):
            raise error

        with monkeypatch.context() as patch:
            patch.setattr(place, fail)
            with pytest.raises(type(error)):
                write(path, {}, {"a": np.ones(9)})
        assert [p.name for p in path.parent.iterdir()] == ([] if new else [path.name])
        assert new or path.read_bytes() == before

    @pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
    def test_a_killed_process_leaves_what_was_there(self, saved):
        before = saved.read_bytes()
        process = run_script(KILLED, saved)
        assert process.stdout.split() == [str(-signal.SIGKILL)] * 4, process.stderr
        assert saved.read_bytes() == before
        unfinished = sorted(p.stat().st_size for p in saved.parent.iterdir() if p != saved)
        assert len(unfinished) == 4
        assert unfinished[0] < 8 * 10**6 < unfinished[2] == unfinished[3]

    @pytest.mark.skipif(sys.platform == "win32", reason="Windows limits no file's size")
    def test_a_full_disk_leaves_what_was_there(self, saved):
        before = saved.read_bytes()
        process = run_script(FULL_DISK, saved)
        assert process.stdout.split() == ["EFBIG"] * 4, process.stderr
        assert not process.stderr
        assert saved.read_bytes() == before
        assert list(saved.parent.iterdir()) == [saved]

    def test_all_is_on_the_disk_before_the_name_is(self, saved, monkeypatch):
        steps = []
        fsync, replace = os.fsync, os.replace

        def note_fsync(descriptor):
            status = os.fstat(descriptor)
            folder = stat.S_ISDIR(status.st_mode)
            steps.append("folder" if folder else status.st_size)
            fsync(descriptor)

        def note_replace(source, target):
            steps.append(target.name)
            replace(source, target)

        monkeypatch.setattr(os, "fsync", note_fsync)
        monkeypatch.setattr(os, "replace", note_replace)
        write(saved, {}, ARRAYS)
        folder = [] if sys.platform == "win32" else ["folder"]
        assert steps == [saved.stat().st_size, saved.name, *folder]

    def test_a_folder_that_cannot_be_synced_is_no_failure(self, path, monkeypatch):
        def refuse(*_args):
            raise PermissionError

        monkeypatch.setattr(os, "open", refuse)
        write(path, HEADER, ARRAYS)
        assert read(path)[0] == HEADER

    def test_a_missing_folder_is_named(self, tmp_path):
        with pytest.raises(FileNotFoundError, match="folder") as caught:
            write(tmp_path / "none" / "model", HEADER, ARRAYS)
        assert caught.value.filename == str(tmp_path / "none")

    def test_no_folder_is_replaced(self, tmp_path):
        with pytest.raises(IsADirectoryError):
            write(tmp_path, HEADER, ARRAYS)
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pipes with names")
    def test_no_device_or_pipe_is_replaced(self, path):
        os.mkfifo(path)
        with pytest.raises(OSError, match="device"):
            write(path, HEADER, ARRAYS)
        assert path.is_fifo()

    @pytest.mark.skipif(sys.platform == "win32", reason="Windows reserves links")
    def test_a_link_stays_a_link(self, saved, tmp_path):
        link = tmp_path / "link"
        link.symlink_to(saved)
        write(link, {"new": 1}, {})
        assert link.is_symlink()
        assert read(saved) == ({"new": 1}, {})

    @pytest.mark.skipif(sys.platform == "win32", reason="Windows has other access rights")
    def test_no_permission_is_left_as_the_system_says_it(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model"
            write(path, HEADER, ARRAYS)
            before = path.read_bytes()
            path.chmod(0)
            Path(folder).chmod(0o555)
            with everyday_user():
                with pytest.raises(PermissionError):
                    read(path)
                with pytest.raises(PermissionError):
                    write(path, {}, {})
            path.chmod(0o600)
            assert path.read_bytes() == before
            assert list(Path(folder).iterdir()) == [path]
            Path(folder).chmod(0o755)

    @pytest.mark.skipif(sys.platform == "win32", reason="Windows has other access rights")
    @pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
    def test_the_mode_is_that_of_any_new_file(self, path, umask, mode):
        old = os.umask(umask)
        try:
            write(path, HEADER, ARRAYS)
        finally:
            os.umask(old)
        assert stat.S_IMODE(path.stat().st_mode) == mode
