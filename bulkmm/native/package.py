# SPDX-License-Identifier: GPL-2.0-only
"""The kernel image in a Debian package (``linux-image-…``, ``linux-binary-…``)."""

import gzip
import io
import lzma
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import zstandard

from bulkmm.errors import BulkmmError

MAGIC = b"!<arch>\n"
HEADER = 60  # bytes before each member of the archive
NAME, SIZE = slice(0, 16), slice(48, 58)  # in it
IMAGE = re.compile(r"(?:/boot/vmlinuz-[^/]+|/modules/[^/]+/vmlinuz(?:\.unsigned)?)$")
OPENERS: dict[str, Any] = {
    "data.tar.xz": lzma.open,
    "data.tar.zst": zstandard.open,
    "data.tar.gz": gzip.open,
}
DAMAGE = (EOFError, OSError, ValueError, lzma.LZMAError, tarfile.TarError)


def image(path: Path, package: bytes) -> bytes:
    """Return the image; it comes early in a package, so the rest is not read."""
    for name, content in _members(path, package):
        if opener := OPENERS.get(name):
            return _image(path, opener(io.BytesIO(content)))
    raise BulkmmError(f"{path}: a package without files that can be unpacked")


def _members(path: Path, package: bytes) -> Iterator[tuple[str, bytes]]:
    at = len(MAGIC)
    while at + HEADER <= len(package):
        header = package[at : at + HEADER]
        size = header[SIZE].strip()
        at += HEADER
        if not size.isdigit() or at + int(size) > len(package):
            raise BulkmmError(f"{path}: a truncated package")
        name = header[NAME].decode("ascii", "replace").rstrip(" /")
        yield name, package[at : at + int(size)]
        at += int(size) + int(size) % 2


def _image(path: Path, unpacked: Any) -> bytes:  # noqa: ANN401 - of three libraries
    try:
        with tarfile.open(fileobj=unpacked, mode="r|") as files:
            for one in files:
                held = files.extractfile(one) if IMAGE.search(one.name) else None
                if held:
                    return held.read()
    except (*DAMAGE, zstandard.ZstdError) as error:
        raise BulkmmError(f"{path}: a damaged package: {error}") from error
    raise BulkmmError(f"{path}: a package without a kernel image")
