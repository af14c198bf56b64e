# SPDX-License-Identifier: GPL-2.0-only
"""A kernel image, extracted from its boot file and relocated below 2 GB.

Relocation is what the kernel's own loader does for KASLR: the tables after the
payload list the places, and the same offset is added to each.
"""

import bz2
import io
import lzma
import re
import struct
import tarfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen

import numpy as np
import zstandard
from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from lz4 import block as lz4

from bulkmm.shell.errors import BulkmmError

Bytes = np.ndarray[tuple[int], np.dtype[np.uint8]]
Places = np.ndarray[tuple[int], np.dtype[np.int64]]

KERNEL_MAP = 0xFFFFFFFF80000000  # where x86-64 links a kernel, physical 0
# its address in the process, and that of a second one: below 1.75 GB all is free
MAP_BASE, SECOND_MAP_BASE = 0x20000000, 0x40000000
HEADER = 0x268  # bytes of the boot header that are read
SETUP_SECTS, SIGNATURE, VERSION, XLOADFLAGS, PAYLOAD = 0x1F1, 0x202, 0x20E, 0x236, 0x248
KERNEL_64 = 1  # of XLOADFLAGS
PACKAGE = b"!<arch>\n"  # begins a Debian package
IMAGE = re.compile(r"(?:/boot/vmlinuz-[^/]+|/modules/[^/]+/vmlinuz(?:\.unsigned)?)$")
LZMA_START = b"\x5d\x00\x00"
LZ4_LEGACY = b"\x02\x21\x4c\x18"
LZ4_BLOCK = 8 << 20  # bytes that a block holds, unless it is the last


@dataclass
class Placed:
    """A program's text and data, at their addresses in the process."""

    name: str
    base: int
    data: Bytes
    sections: dict[str, tuple[int, int]]  # address and size

    def at(self, address: int, size: int) -> Bytes:
        """Return bytes, which can be written."""
        start = address - self.base
        if not 0 <= start <= start + size <= len(self.data):
            raise BulkmmError(f"{self.name} has nothing at {address:#x}")
        return self.data[start : start + size]

    def read(self, address: int, size: int) -> bytes:
        """Return a copy of bytes."""
        return self.at(address, size).tobytes()

    def write(self, address: int, data: bytes) -> None:
        """Replace bytes."""
        self.at(address, len(data))[:] = np.frombuffer(data, np.uint8)

    def word(self, address: int, form: str) -> int:
        """Return one number, in a format of Python's ``struct``."""
        (value,) = self.words(address, struct.calcsize(form), form)
        return value

    def words(self, address: int, size: int, form: str) -> list[int]:
        """Return the numbers in so many bytes."""
        data = self.read(address, size)
        return [value for (value,) in struct.iter_unpack(form, data)]

    def section(self, name: str) -> tuple[int, int]:
        """Return address and size of a section; without one, of nothing."""
        return self.sections.get(name, (self.base, 0))


@dataclass
class Image(Placed):
    """A kernel."""

    release: str
    gs: int  # base of per-CPU addresses
    payload: bytes = field(repr=False)  # the kernel as it was linked
    map_base: int = MAP_BASE

    @property
    def delta(self) -> int:
        """Return what is added to addresses as linked."""
        return (self.map_base - KERNEL_MAP) % 2**64

    def place(self, linked: int) -> int:
        """Return the process address of a link address."""
        return (linked + self.delta) % 2**64 if linked >= KERNEL_MAP else linked

    def text(self, address: int) -> str:
        """Return a string."""
        start = address - self.base
        return self.data[start : start + 256].tobytes().partition(b"\0")[0].decode()


def read_image(path: Path, map_base: int = MAP_BASE) -> Image:
    """Return the kernel in a boot file or a package of one."""
    name, packed = _payload(path, boot_file(path))
    if (payload := unpack_data(path, packed)) is None:
        raise BulkmmError(f"{path}: unknown compression ({packed[:4].hex()})")
    try:
        return _laid_out(path, name, payload, map_base)
    except (ELFError, struct.error, IndexError, ValueError) as error:
        raise BulkmmError(f"{path}: a kernel that cannot be read: {error}") from error


def read_release(path: Path) -> str:
    """Return the release of the kernel in a file."""
    return _payload(path, boot_file(path))[0]


def boot_file(path: Path) -> bytes:
    """Return a file's content, or the kernel image in a package."""
    try:
        content = path.read_bytes()
    except PermissionError as error:
        how = "have root make a copy that you can read, and name that"
        raise BulkmmError(f"{path}: {error.strerror}: {how}") from error
    except OSError as error:
        raise BulkmmError(f"{path}: {error.strerror}") from error
    return _in_package(path) if content.startswith(PACKAGE) else content


def _in_package(path: Path) -> bytes:
    """Return the kernel image in a Debian package; it comes early, the rest is left."""
    command = ["dpkg-deb", "--fsys-tarfile", str(path)]
    try:
        with (
            Popen(command, stdout=PIPE, stderr=DEVNULL) as child,
            tarfile.open(fileobj=child.stdout, mode="r|") as files,
        ):
            for member in files:
                file = files.extractfile(member) if IMAGE.search(member.name) else None
                if file:
                    return file.read()
    except FileNotFoundError as error:
        raise BulkmmError("dpkg-deb is not installed") from error
    except (OSError, tarfile.TarError) as error:
        raise BulkmmError(f"{path}: a damaged package: {error}") from error
    where = "since 6.19 Debian's linux-binary-… has it, not linux-image-…"
    raise BulkmmError(f"{path}: a package without a kernel image ({where})")


def _payload(path: Path, boot: bytes) -> tuple[str, bytes]:
    if boot[0x38:0x3C] == b"ARM\x64" or boot[4:8] == b"zimg":
        raise BulkmmError(f"{path}: a kernel of another architecture, not x86-64")
    if boot[SIGNATURE : SIGNATURE + 4] != b"HdrS":
        raise BulkmmError(f"{path}: not a kernel image")
    if len(boot) < HEADER:
        raise BulkmmError(f"{path}: truncated")
    if not struct.unpack_from("<H", boot, XLOADFLAGS)[0] & KERNEL_64:
        raise BulkmmError(f"{path}: a kernel of another architecture, not x86-64")
    (version,) = struct.unpack_from("<H", boot, VERSION)
    offset, length = struct.unpack_from("<II", boot, PAYLOAD)
    start = ((boot[SETUP_SECTS] or 4) + 1) * 512 + offset
    if len(boot) < start + length:
        lacking = start + length - len(boot)
        raise BulkmmError(f"{path}: truncated: {lacking} bytes are missing")
    match = re.match(rb"[\w.+~-]+", boot[version + 0x200 :][:256])
    name = match[0].decode() if match else "unknown"
    return name, boot[start : start + length]


def _lz4(data: bytes) -> bytes:
    """Return the content of blocks that each follow their length.

    All but the last hold the same; the kernel's build appends their total.
    """
    content, at = bytearray(), len(LZ4_LEGACY)
    while len(content) % LZ4_BLOCK == 0 and at + 8 <= len(data):
        (length,) = struct.unpack_from("<I", data, at)
        block = data[at + 4 : at + 4 + length]
        content += lz4.decompress(block, uncompressed_size=LZ4_BLOCK)
        at += 4 + length
    return bytes(content)


FORMATS: dict[bytes, Callable[[bytes], bytes]] = {
    b"\x28\xb5\x2f\xfd": lambda data: (
        zstandard.ZstdDecompressor().decompressobj().decompress(data)
    ),
    b"\x1f\x8b": lambda data: zlib.decompressobj(16 + zlib.MAX_WBITS).decompress(data),
    b"\xfd7zXZ\0": lambda data: lzma.LZMADecompressor().decompress(data),
    LZMA_START: lambda data: lzma.LZMADecompressor().decompress(data),
    b"BZh": lambda data: bz2.BZ2Decompressor().decompress(data),
    LZ4_LEGACY: _lz4,
}
DAMAGE = (
    *(zlib.error, lzma.LZMAError, zstandard.ZstdError, lz4.LZ4BlockError, OSError),
)


def unpack_data(path: Path, packed: bytes) -> bytes | None:
    """Return the decompressed data; None if the format is unknown."""
    methods = [how for magic, how in FORMATS.items() if packed.startswith(magic)]
    try:
        return methods[0](packed) if methods else None
    except DAMAGE as error:
        raise BulkmmError(f"{path}: damaged: {error}") from error


def _laid_out(path: Path, release: str, payload: bytes, map_base: int) -> Image:
    elf = ELFFile(io.BytesIO(payload))
    if elf["e_machine"] != "EM_X86_64":
        raise BulkmmError(f"{path}: a kernel of another architecture, not x86-64")
    segments = [
        segment for segment in elf.iter_segments() if segment["p_type"] == "PT_LOAD"
    ]
    # Per-CPU data may be linked at 0: use its load address.
    low = min(KERNEL_MAP + segment["p_paddr"] for segment in segments)
    end = max(
        KERNEL_MAP + segment["p_paddr"] + segment["p_memsz"] for segment in segments
    )
    image = Image(
        f"the kernel {release}",
        release=release,
        base=low - KERNEL_MAP + map_base,
        data=np.zeros(end - low, np.uint8),
        sections={},
        gs=0,
        payload=payload,
        map_base=map_base,
    )
    for segment in segments:
        start = KERNEL_MAP + segment["p_paddr"] - low + image.base
        image.write(start, segment.data())
        if not segment["p_vaddr"]:
            image.gs = start
    for section in elf.iter_sections():
        address = image.place(section["sh_addr"])
        image.sections[section.name] = address, section["sh_size"]
    _relocate(path, image, payload[elf["e_shoff"] + elf.num_sections() * 64 :])
    return image


def _relocate(path: Path, image: Image, tables: bytes) -> None:
    """Apply the tables, last first, each up to a 0: 64, (32 less,) 32 bits."""
    words = np.frombuffer(tables[len(tables) % 4 :], "<u4")[::-1]
    ends = np.flatnonzero(words == 0)
    blocks = [part[part != 0] for part in np.split(words, ends)[:-1]]
    delta = image.delta
    layouts = {
        2: ((4, delta), (8, delta)),
        3: ((4, delta), (4, -delta), (8, delta)),
    }
    if len(blocks) not in layouts:
        raise BulkmmError(f"{path}: a kernel that cannot be relocated")
    to = image.map_base - KERNEL_MAP % 2**32 - image.base
    for block, (width, by) in zip(blocks, layouts[len(blocks)], strict=True):
        _add(image.data, block.astype(np.int64) + to, width, by)


def _add(data: Bytes, places: Places, width: int, by: int) -> None:
    """Add a number to words at any addresses."""
    cells = places[:, None] + np.arange(width)
    words = data[cells].view(f"<u{width}")
    words += words.dtype.type(by % 2 ** (8 * width))
    data[cells] = words.view(np.uint8)
