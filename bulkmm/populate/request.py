# SPDX-License-Identifier: GPL-2.0-only
"""A file to fill, as it is given on the command line: FILE[,size=SIZE][,node=N]."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bulkmm.shell import size
from bulkmm.shell.errors import UsageError, unknown_word

LARGEST = "64T"
LAST_NODE = 1023
MOST_FILES = 1024  # BMM_RANGES_MAX
KEYS = ("size", "node")


@dataclass(frozen=True)
class Request:
    """A file, how much of it to fill (None: all), and from which memory node."""

    path: Path
    size: int | None
    node: int | None


def parse_requests(
    words: Sequence[str], usual_size: int | None, usual_node: int | None
) -> list[Request]:
    """Return the files of a command line, with its options where a word has none."""
    if not words:
        raise UsageError("populate: give a FILE, several, or --memfd and a command")
    if len(words) > MOST_FILES:
        raise UsageError(f"{len(words)} files: give {MOST_FILES} at most")
    return [_parse_request(word, usual_size, usual_node) for word in words]


def _parse_request(
    word: str, usual_size: int | None, usual_node: int | None
) -> Request:
    # as in QEMU's options, two commas are one of the name
    name, *settings = (
        part.replace("\0", ",") for part in word.replace(",,", "\0").split(",")
    )
    if not name:
        raise UsageError(f"no file in {word!r}: give FILE[,size=SIZE][,node=N]")
    values: dict[str, str] = {}
    for setting in settings:
        key, _, value = setting.partition("=")
        if key not in KEYS:
            error = unknown_word(f"setting of {name},", key, KEYS)
            raise UsageError(f"{error} (a comma of a file's name is doubled: ,,)")
        if key in values:
            raise UsageError(f"{word}: {key} is given twice")
        values[key] = value
    try:
        return Request(
            Path(name),
            size.parse_bytes(values["size"], LARGEST)
            if "size" in values
            else usual_size,
            _parse_node(values["node"]) if "node" in values else usual_node,
        )
    except UsageError as error:
        raise UsageError(f"{word}: {error}") from error


def _parse_node(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) <= LAST_NODE):
        raise UsageError(f"node {text}: give 0 to {LAST_NODE}")
    return int(text)
