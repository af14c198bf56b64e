# SPDX-License-Identifier: GPL-2.0-only
"""The fields of a result, from the names that its producer gives it.

Programs of the bench and guests of the lab print a scenario, OPERATION-SIZE-MEMORY-
PLACEMENT-USE, and a variant, ARM-CALL-CONTROL-THREADS:BACKEND, whose parts are mostly
optional. They are taken apart here, once, when a result is recorded; what reads results
reads the fields of ``model.Result``, which says what each means.
"""

import re
from typing import Any

from bulkmm.shell.size import PAGE, parse_bytes

# words that name the memory, too
OPERATIONS = {"thp": "clear", "hugetlb": "clear", "pmem": "memmap", "hmm": "memmap"}
FIRST_USE = "first-use"
SCENARIO = re.compile(
    r"(?P<head>.+?)-(?P<size>\d+[kmgt]|1page)"
    r"(?:-(?P<memory>4k|thp|memfd|hugetlb|order\d+|mixed|huge))?"
    r"(?:-(?P<placement>misaligned|middle|last|far|adjacent|empty|split|odd"
    r"|map-mem|(?:early|align-\d+[kg])(?:-map-mem)?))?"
    r"(?:-(?P<use>.+))?",
    re.DOTALL,
)
ARMS_WITH_CALLS = ("bulkmm", "python", "rep-stosb", "resident")
TAIL = r"(.*?)(?:-(again|aligned))?(?:-(\d+){})?"
VARIANT = re.compile(TAIL.format("t"), re.DOTALL)
# where every variant has threads, and none a number of anything else
POPULATING = re.compile(TAIL.format(""), re.DOTALL)


def read_scenario(name: str) -> dict[str, Any]:
    """Return the fields that say what was done, to which memory."""
    match = SCENARIO.fullmatch(name)
    fields: dict[str, Any] = match.groupdict("") if match else {"head": name}
    head, size = fields.pop("head"), fields.pop("size", "")
    word, _, more = head.partition("-")
    fields["operation"] = OPERATIONS.get(word, word)
    if head.startswith(f"{FIRST_USE}-"):
        fields |= {"operation": FIRST_USE, "use": head.removeprefix(f"{FIRST_USE}-")}
    elif match and (more or word in OPERATIONS):
        fields["memory"] = head
    elif more:
        fields["use"] = more
    if size:
        fields["size"] = PAGE if size == "1page" else parse_bytes(size, "9999T")
    return fields


def read_variant(name: str, operation: str = "") -> dict[str, Any]:
    """Return the fields that say who did it, and how."""
    way, _, backend = name.partition(":")
    pattern = POPULATING if operation == "populate" else VARIANT
    match = pattern.fullmatch(way)
    way, control, threads = match.groups() if match else (way, None, None)
    arm = next((a for a in ARMS_WITH_CALLS if f"{way}-".startswith(f"{a}-")), way)
    return {
        "arm": arm,
        "call": way[len(arm) + 1 :],
        "backend": backend,
        "threads": int(threads or 1),
        "control": control or "",
    }


def read_names(scenario: str, variant: str) -> dict[str, Any]:
    """Return all fields of a result that its names say."""
    fields = read_scenario(scenario)
    names = {"scenario": scenario, "variant": variant}
    return {**names, **fields, **read_variant(variant, fields["operation"])}


def split_numbers(name: str) -> list[int | str]:
    """Return a name in parts that sort by the numbers in it: its order, no meaning."""
    parts = re.split(r"(\d+)", name)
    return [int(part) if part.isdecimal() else part for part in parts]
