# SPDX-License-Identifier: GPL-2.0-only
"""Reading kernels and modules: what is none is refused in one clear line."""

import itertools
import struct
from pathlib import Path

import numpy as np
import pytest
from lz4 import block as lz4
from nativelib import deb

from bench.kernel import archive, patch, symbols, vmlinux
from bulkmm.control import btf
from bulkmm.shell.errors import BulkmmError


def boot_file(payload: bytes, *, length: int | None = None, flags: int = 1) -> bytes:
    """Return the least that is a boot file, with this payload."""
    header = bytearray(0x400)
    header[vmlinux.SETUP_SECTS] = 1
    header[vmlinux.SIGNATURE : vmlinux.SIGNATURE + 4] = b"HdrS"
    struct.pack_into("<H", header, vmlinux.VERSION, 0x100)
    header[0x300:0x310] = b"6.12.1-made-up x"
    struct.pack_into("<H", header, vmlinux.XLOADFLAGS, flags)
    size = len(payload) if length is None else length
    struct.pack_into("<II", header, vmlinux.PAYLOAD, 0, size)
    return bytes(header) + payload


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not a kernel image"),
        (b"\x7fELF" + bytes(1000), "not a kernel image"),
        (bytes(0x38) + b"ARM\x64" + bytes(1000), "another architecture"),
        (b"MZ\0\0zimg" + bytes(1000), "another architecture"),
        (boot_file(b"\x1f\x8b" + bytes(64), flags=0), "another architecture"),
        (boot_file(b"\x1f\x8b", length=1000), "truncated: 998 bytes are missing"),
        (boot_file(b"LZIP" + bytes(64)), "unknown compression (4c5a4950)"),
        (boot_file(b"\x1f\x8b" + bytes(64)), "damaged"),
        (boot_file(b"\x28\xb5\x2f\xfd" + b"\xff" * 64), "damaged"),
        (boot_file(b"\xfd7zXZ\0" + bytes(64)), "damaged"),
        (
            boot_file(vmlinux.LZ4_LEGACY + struct.pack("<I", 60) + b"\xff" * 60),
            "damaged",
        ),
        (deb({"./boot/config": b"no"}), "a kernel image (since 6.19 "),
        (deb({"./boot/vmlinuz-1": b"no"})[:-40], "a damaged package"),
        (
            deb({"./boot/vmlinuz-1": b"no"}).replace(b"\xfd7zXZ", b"\xfd7zXY"),
            "a damaged package",
        ),
        (vmlinux.PACKAGE + b"odd" * 40, "a damaged package"),
        (deb({"./boot/vmlinuz-1": b"no"}), "not a kernel image"),
    ],
)
def test_what_is_no_kernel_is_refused(
    content: bytes, message: str, tmp_path: Path
) -> None:
    file = tmp_path / "vmlinuz"
    file.write_bytes(content)
    with pytest.raises(BulkmmError) as failure:
        vmlinux.read_image(file)
    assert message in str(failure.value)
    assert str(file) in str(failure.value)


@pytest.mark.parametrize(
    "name", ["./boot/vmlinuz-6.12.1-x", "./usr/lib/modules/7.3.1-x/vmlinuz"]
)
def test_the_image_in_a_package(name: str, tmp_path: Path) -> None:
    file = tmp_path / "linux-image.deb"
    image = boot_file(b"\x1f\x8b" + bytes(64))
    file.write_bytes(deb({"./boot/config": b"no", name: image, "./more": b"no"}))
    assert vmlinux.boot_file(file) == image
    assert vmlinux.read_release(file) == "6.12.1-made-up"


OFFERED = {
    *("linux-image-5.10.0-47-amd64", "linux-image-6.12-amd64", "linux-image-amd64"),
    *("linux-image-6.1.0-47-amd64", "linux-headers-6.1.0-47-amd64"),
    *("linux-headers-6.1.0-47-common", "linux-kbuild-6.1"),
    # an update whose image is not signed yet
    *("linux-image-6.1.0-48-amd64-unsigned", "linux-headers-6.1.0-48-amd64"),
    *("linux-headers-6.1.0-48-common", "linux-binary-unsigned-7.3.2+deb13-amd64"),
    *("linux-image-6.12.9+deb13-amd64", "linux-image-6.12.9+deb13-amd64-dbg"),
    *("linux-image-6.12.9+deb13-amd64-unsigned", "linux-image-6.12.10+deb13-amd64"),
    *("linux-headers-6.12.9+deb13-amd64", "linux-headers-6.12.9+deb13-common"),
    *("linux-kbuild-6.12.9+deb13", "linux-image-6.12.8+deb13-cloud-amd64"),
    *("linux-binary-7.3-rt-amd64", "linux-image-7.3-rt-amd64"),
    *("linux-headers-7.3-rt-amd64", "linux-headers-7.3-common-rt"),
    *("linux-headers-7.3-common", "linux-kbuild-7.3"),
    *("linux-binary-7.4.1+deb14-amd64", "linux-image-7.3.1+deb13-arm64"),
}


def test_what_the_archive_offers() -> None:
    offers = archive.select_offers(OFFERED)
    assert [one.release for one in offers] == [
        # the newest that can be built for
        *("7.3-rt-amd64", "6.12.9+deb13-amd64", "6.1.0-48-amd64", "6.1.0-47-amd64"),
        *("7.3.2+deb13-amd64", "6.12.10+deb13-amd64", "6.12.8+deb13-cloud-amd64"),
    ]
    assert [one.image for one in offers[:5]] == [
        *("linux-binary-7.3-rt-amd64", "linux-image-6.12.9+deb13-amd64"),
        *("linux-image-6.1.0-48-amd64-unsigned", "linux-image-6.1.0-47-amd64"),
        "linux-binary-unsigned-7.3.2+deb13-amd64",
    ]
    assert offers[0].headers[1] == "linux-headers-7.3-common-rt"
    assert offers[1].headers[1] == "linux-headers-6.12.9+deb13-common"
    assert offers[2].headers[2] == "linux-kbuild-6.1"
    assert not offers[5].headers


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(BulkmmError, match="No such file"):
        vmlinux.read_image(tmp_path / "vmlinuz")


def test_btf_that_is_none() -> None:
    for content in (b"", bytes(64)):
        with pytest.raises(BulkmmError, match="BTF cannot be read"):
            btf.Types(content)


@pytest.mark.parametrize("cut", [4, 8, 11])
def test_btf_whose_last_type_is_cut_off(cut: int) -> None:
    function = struct.pack("<III", 1, btf.FUNCTION << 24, 0)
    size, strings = len(function) - cut, b"\0name\0"
    header = struct.pack("<HBBIIIII", btf.MAGIC, 1, 0, 24, 0, size, size, len(strings))
    with pytest.raises(BulkmmError, match="BTF cannot be read"):
        btf.Types(header + function[:size] + strings)


def test_a_bit_of_a_task() -> None:
    names = (b"", b"int", b"task", b"flags", b"in_populate")
    strings = b"".join(name + b"\0" for name in names)
    place = {name: strings.index(b"\0" + name + b"\0") + 1 for name in names[1:]}
    number = struct.pack("<IIII", place[b"int"], 1 << 24, 4, 32)
    # offsets of a struct with bit fields have their width above them
    head = struct.pack("<III", place[b"task"], 1 << 31 | btf.STRUCT << 24 | 2, 8)
    flags = struct.pack("<III", place[b"flags"], 1, 32)
    populate = struct.pack("<III", place[b"in_populate"], 1, 1 << 24 | 37)
    types = number + head + flags + populate
    layout = (24, 0, len(types), len(types), len(strings))
    kernel = btf.Types(
        struct.pack("<HBBIIIII", btf.MAGIC, 1, 0, *layout) + types + strings
    )
    assert kernel.bit_of("task.in_populate") == 37
    assert kernel.offset_of("task.in_populate") == kernel.offset_of("task.flags") == 4
    assert kernel.bit_of("task.flags") == 32
    assert kernel.bit_of("task.populate") == -1


def alternative(new: bytes, flags: int, *features: int) -> bytes:
    """Return what becomes of eight bytes for which feature 7 has others."""
    entry = patch.ALT.pack(-32, 8 - 36, 7, flags, 8, len(new))
    code = b"\xaa" * 8 + new.ljust(24, b"\0") + entry
    data = np.frombuffer(code, np.uint8).copy()
    sections = {".altinstructions": (32, patch.ALT.size)}
    text = vmlinux.Placed("text", 0, data, sections)
    patch.apply_patches(text, patch.Plan({*features}, 0x1000, text, None))
    return bytes(text.data[:8])


@pytest.mark.parametrize("size", [0, 5, vmlinux.LZ4_BLOCK, vmlinux.LZ4_BLOCK + 5])
def test_lz4_as_the_kernels_build_makes_it(size: int) -> None:
    """Blocks of 8 MiB, and behind them the total."""
    whole = bytes(np.arange(size, dtype=np.uint32).view(np.uint8)[:size])
    packed = vmlinux.LZ4_LEGACY
    for at in range(0, size, vmlinux.LZ4_BLOCK):
        part = whole[at : at + vmlinux.LZ4_BLOCK]
        block = lz4.compress(part, store_size=False)
        packed += struct.pack("<I", len(block)) + block
    assert vmlinux.unpack_data(Path("x"), packed + struct.pack("<I", size)) == whole


def test_alternatives_follow_the_features() -> None:
    new = b"\xf3\xaa"
    original, replacement = b"\xaa" * 8, new + patch.make_nops(6)
    assert alternative(new, 0) == original
    assert alternative(new, 0, 7) == replacement
    assert alternative(new, patch.ALT_NOT) == replacement
    assert alternative(new, patch.ALT_NOT, 7) == original
    # without code: what a CPU that has the feature jumps over
    assert alternative(b"", 0, 7) == patch.make_nops(8)


@pytest.mark.parametrize(("target", "calls"), [(0x900, True), (0x800, False)])
def test_calls_of_nop_func_become_nops(target: int, *, calls: bool) -> None:
    """As alt_replace_call() in arch/x86/kernel/alternative.c: a NOP for nop_func."""
    site = patch.INDIRECT_CALL + struct.pack("<i", 8 - 6)  # by way of the next word
    entry = patch.ALT.pack(-16, 0, 7, patch.ALT_DIRECT, 6, patch.NEAR)
    code = site.ljust(8, b"\0") + struct.pack("<Q", target) + entry
    data = np.frombuffer(code, np.uint8).copy()
    sections = {".altinstructions": (16, patch.ALT.size)}
    text = vmlinux.Placed("text", 0, data, sections)
    patch.apply_patches(text, patch.Plan({7}, 0x1000, text, None, nop=0x800))
    call = struct.pack("<Bi", patch.CALL, target - patch.NEAR) + patch.make_nops(1)
    assert bytes(text.data[:6]) == (call if calls else patch.make_nops(6))


@pytest.mark.parametrize("before", [b"\x01+,\x019OTp", b"\0\0\0\0"])
def test_the_tokens_of_kallsyms_are_parted_from_what_is_before(before: bytes) -> None:
    """The finder walks back to a zero: 6.1.0-54 has other tables there, and none."""
    tokens = [b"%c" % n if n in b"0123456789a" else b"t_%d" % n for n in range(256)]
    places = [0, *itertools.accumulate(len(token) + 1 for token in tokens)]
    table = b"\0".join([*tokens, bytes(-places[-1] % 8)])
    after = table + struct.pack("<256H", *places[:-1]) + b"more"
    utf16 = b"".join(b"%c\0" % n for n in range(128))  # has the digits, too
    tables = bytes(3) + utf16 + bytes(5) + before.rjust(16, b"x")
    assert len(tables) % 8 == 0
    parted = symbols.part_tokens(tables + after)
    assert parted == tables[:-1] + b"\0" + after
    wrong = after[:-20] + b"!" + after[-19:]  # in the index
    assert symbols.part_tokens(tables + wrong) == tables + wrong
