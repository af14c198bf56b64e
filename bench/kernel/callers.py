# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm lab callers``: record which functions call those that the module hooks."""

import argparse
import re
import shutil
import textwrap
from collections.abc import Iterator
from pathlib import Path

from bench.kernel import find
from bench.kernel.archive import Archive
from bulkmm.control import requirements
from bulkmm.shell import files
from bulkmm.shell.errors import Exit, UsageError
from bulkmm.shell.progress import Progress
from lab.choices import compile_pattern
from lab.machine import cached, root
from lab.paths import PROJECT, lock_cache, make_scratch, need_sources

TABLE = PROJECT / "module" / "callers.def"
HEAD = """\
/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The callers of each hooked function, by series and flavour of kernels that have
 * them. "bulkmm lab callers" writes this; it has read:
 *
"""
ROW = re.compile(r'BMM_CALLERS\((\w+),\s*"([^"]*)",\s*"([^"]*)"\)')
READ = re.compile(r"^ \* {4}(\S+)$", re.MULTILINE)
FLAVOUR = re.compile(r"-([a-z].*)")
WIDTH = 70

Kernels = set[str]
Rows = dict[str, dict[str, Kernels]]  # by function and callers


def update_table(args: argparse.Namespace) -> int:
    """Add what the kernels have to the table."""
    if not args.kernels and not args.only:
        raise UsageError("name kernels, or those of the archive by --only")
    need_sources()
    progress = Progress()
    rows, releases = read_table(TABLE.read_text("ascii") if TABLE.is_file() else "")
    for image in _list_images(args, progress):
        with progress.show_status(f"reading {image}"):
            release, by_function = _read_callers(image, progress)
        kernel = name_kernel(release)
        for function, callers in by_function.items():
            rows.setdefault(function, {}).setdefault(callers, set()).add(kernel)
        releases.add(release)
        files.write_file(TABLE, format_table(rows, releases), "the table")
        progress.note(f"read {release}")
    return Exit.OK


def _read_callers(image: Path, progress: Progress) -> tuple[str, dict[str, str]]:
    """Return a kernel's release, and the callers of each hooked function."""
    from bench.kernel import image_calls

    text = image_calls.read_text(image, progress)
    return text.release, image_calls.list_callers(text)


def _list_images(args: argparse.Namespace, progress: Progress) -> Iterator[Path]:
    """Yield the images that are named, then those of the archive."""
    for name in args.kernels:
        with find.find_files(name, find.NO_MODULE, progress) as (image, _):
            yield image
    if not args.only:
        return
    selection = compile_pattern(args.only)
    cached.need_root()
    with make_scratch("bulkmm-callers-") as place:
        with lock_cache(progress) as cache:
            archive = Archive(root.ensure_root(cache, progress))
            archive.update(progress)
        for offer in archive.offers():
            if not selection.search(offer.release):
                continue
            with lock_cache(progress), archive.fetched((offer.image,)) as debs:
                image = Path(shutil.copy(debs[0], place / "image.deb"))
            yield image


def name_kernel(release: str) -> str:
    """Return "6.12-cloud-amd64" for 6.12.107+deb13-cloud-amd64."""
    flavour = FLAVOUR.search(release)
    return requirements.series_of(release) + (f"-{flavour[1]}" if flavour else "")


def read_table(text: str) -> tuple[Rows, set[str]]:
    """Return the table's rows, and the releases that they were read from."""
    rows: Rows = {}
    for function, callers, kernels in ROW.findall(re.sub(r'"\s+"', "", text)):
        rows.setdefault(function, {})[callers] = set(kernels.split())
    return rows, set(READ.findall(text))


def format_table(rows: Rows, releases: set[str]) -> str:
    """Return the table as text."""
    names = (f" *    {name}\n" for name in _sort_kernels(releases))
    parts = [HEAD, *names, " */\n"]
    for function in sorted(rows):
        for callers, kernels in sorted(rows[function].items()):
            words = " ".join(_sort_kernels(kernels))
            parts.append(
                f"BMM_CALLERS({function},\n{_quote(callers)},\n{_quote(words)})\n"
            )
    parts.append("#undef BMM_CALLERS\n")
    return "".join(parts)


def _sort_kernels(names: Kernels) -> list[str]:
    return sorted(names, key=lambda name: (requirements.parse_version(name), name))


def _quote(words: str) -> str:
    """Return a C string of words, on as many lines as it takes."""
    lines = textwrap.wrap(words, WIDTH, break_on_hyphens=False) or [""]
    ends = [*(" " for _ in lines[1:]), ""]
    return "\n".join(f'\t"{line}{end}"' for line, end in zip(lines, ends, strict=True))
