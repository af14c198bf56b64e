# SPDX-License-Identifier: GPL-2.0-only
"""The scenarios of the native bench, as the tables of its C sources name them.

They are read there, so that a name is refused before a kernel is unpacked.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import chain
from pathlib import Path

from bulkmm.shell.errors import unknown_word

FOLDER = Path(__file__).parent
SOURCES = {
    "memmap": "memmap_device.c",
    "clear": "clear.c",
    "copy": "copy.c",
    "vmap": "vmap_job.c",
    "hotplug": "hotplug.c",
}
NAME = re.compile(r'^\t(?:\{ |add\(&list\[\d\], )"([a-z][a-z0-9-]+)",', re.MULTILINE)
DEVICE = re.compile(r'^\tDEVICE\("([a-z-]+)", \w+, "([a-z0-9-]*)"', re.MULTILINE)
SIZE = "100g"  # of the device, if a name has no other
SIZED = re.compile(r"(pmem-fsdax|pmem-devdax|hmm-private)-(\d+[kmgt])")


@cache
def list_scenarios(subject: str) -> Sequence[str]:
    """Return the names of a subject's scenarios; of devices with the usual size."""
    text = (FOLDER / SOURCES[subject]).read_text(encoding="utf-8")
    devices = (f"{kind}-{SIZE}{suffix}" for kind, suffix in DEVICE.findall(text))
    return [*NAME.findall(text), *devices]


def check_scenarios(names: Sequence[str], subjects: Sequence[str]) -> None:
    """Reject a scenario of none of these subjects, before all the work."""
    choices = [*chain(*map(list_scenarios, subjects))]
    for name in _list_unknown(names, choices):
        kind = "scenario" if len(subjects) > 1 else f"{subjects[0]} scenario"
        raise unknown_word(kind, name, choices, "bulkmm bench kernel --help")


def _list_unknown(names: Sequence[str], choices: Sequence[str]) -> Iterator[str]:
    """Yield the names that are none of these, whatever the size of a device."""
    for name in names:
        if SIZED.sub(rf"\1-{SIZE}", name, count=1) not in choices:
            yield name
