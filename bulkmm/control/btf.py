# SPDX-License-Identifier: GPL-2.0-only
"""Types of a kernel, from its BTF: offsets, sizes, enumerators, prototypes.

Own code, because no library on PyPI reads BTF, and pahole would have to run as
root in the lab's root.
"""

import struct
from collections.abc import Iterable
from functools import cached_property

from bulkmm.control.requirements import Requirements
from bulkmm.shell.errors import BulkmmError

Prototypes = dict[str, list[str]]  # by function
MAGIC = 0xEB9F
INT, ARRAY, STRUCT, UNION, ENUM, ENUM64 = 1, 3, 4, 5, 6, 19
POINTER, MODIFIERS = 2, {8, 9, 10, 11, 18}
FORWARD, FUNCTION, PROTOTYPE = 7, 12, 13
# C keywords of tagged types
WORDS = {STRUCT: "struct ", UNION: "union ", ENUM: "enum ", ENUM64: "enum "}
WORDS |= {FORWARD: "struct ", 9: "volatile ", 10: "const ", 11: "restrict "}
TRANSPARENT = {9, 10, 11, 18}  # MODIFIERS without a name of their own
# bytes after the common 12: once per type, and per entry
PER_TYPE = {INT: 4, ARRAY: 12, 14: 4, 17: 4}
PER_ENTRY = {STRUCT: 12, UNION: 12, ENUM: 8, 13: 8, 15: 12, ENUM64: 12}
KINDS = 19
FIXED = [12 + PER_TYPE.get(kind, 0) for kind in range(KINDS + 1)]
STEPS = [PER_ENTRY.get(kind, 0) for kind in range(KINDS + 1)]


def _kind_of(info: int) -> int:
    return info >> 24 & 31


class _Lengths(dict[int, int]):
    """The words of a type by its second one, which has its kind and its entries."""

    def __missing__(self, info: int) -> int:
        kind = _kind_of(info)
        self[info] = length = (FIXED[kind] + STEPS[kind] * (info & 0xFFFF)) // 4
        return length


class Types:
    """All types of an image."""

    def __init__(self, data: bytes, names: Iterable[str] | None = None) -> None:
        """Find where each is; of structs and functions only these names, if any."""
        self._name_places: dict[str, int] = {}
        self._names = names
        try:
            self._index_types(data)
        except (struct.error, IndexError, ValueError, TypeError) as error:
            raise BulkmmError(f"the kernel's BTF cannot be read: {error}") from error

    def _index_types(self, data: bytes) -> None:
        magic, _, _, header, types, size, strings, _ = struct.unpack_from(
            "<HBBIIIII", data
        )
        if magic != MAGIC:
            raise BulkmmError("the kernel's BTF cannot be read: not BTF")
        self._data = data
        self._strings: int = header + strings
        self._start: int = header + types
        end = self._start + size
        if end > len(data):
            raise BulkmmError("the kernel's BTF cannot be read: it ends too early")
        # There are 100,000 types: this loop is most of what reading them takes, so
        # whatever else is asked of them is read when it is.
        self._words = words = memoryview(data)[self._start : end].cast("I")
        self._places = places = [0]  # of each type by number, in words; 0 is void
        lengths, add_place = _Lengths(), places.append
        at, end = 0, len(words)
        while at < end:
            add_place(at)
            at += lengths[words[at + 1]]
        if at > end:
            raise ValueError("its last type ends too late")

    @cached_property
    def _candidates(self) -> list[tuple[int, int]]:
        """Number and place of each type, or of those whose names are wanted."""
        words, numbers = self._words, enumerate(self._places[1:], 1)
        if self._names is None:
            return [*numbers]
        wanted = {*map(self._find_name, self._names)}
        return [(number, at) for number, at in numbers if words[at] in wanted]

    @cached_property
    def _structs(self) -> dict[int, int]:
        """Structs and unions by the place of their name."""
        words, structs = self._words, dict[int, int]()
        for number, at in self._candidates:
            if _kind_of(words[at + 1]) in (STRUCT, UNION):
                structs.setdefault(words[at], number)
        return structs

    @cached_property
    def _functions(self) -> dict[int, set[int]]:
        """Prototypes of functions by the place of their name."""
        words, prototypes = self._words, dict[int, set[int]]()
        for _, at in self._candidates:
            if _kind_of(words[at + 1]) == FUNCTION:
                prototypes.setdefault(words[at], set()).add(words[at + 2])
        return prototypes

    @cached_property
    def _enums(self) -> list[int]:
        """Where enumerations are."""
        words, kinds = self._words, (ENUM, ENUM64)
        places = [at for at in self._places[1:] if _kind_of(words[at + 1]) in kinds]
        return [self._start + 4 * at for at in places]

    def _find_type(self, number: int) -> int:
        """Return the place of a type."""
        return self._start + 4 * self._places[number]

    def _read_head(self, at: int) -> tuple[int, int]:
        (info,) = struct.unpack_from("<I", self._data, at + 4)
        return _kind_of(info), info & 0xFFFF

    def _read_name(self, at: int) -> str:
        start = self._strings + int(struct.unpack_from("<I", self._data, at)[0])
        return self._data[start : self._data.index(b"\0", start)].decode()

    def _find_name(self, name: str) -> int:
        """Return the place of a name among the strings; below 1 if there is none."""
        if name not in self._name_places:
            at = self._data.find(b"\0%b\0" % name.encode(), self._strings)
            self._name_places[name] = at + 1 - self._strings
        return self._name_places[name]

    def _read_target(self, at: int) -> int:
        """Return the number of the type that modifiers and typedefs resolve to."""
        return int(struct.unpack_from("<I", self._data, at + 8)[0])

    def _find_member(self, at: int, name: str) -> tuple[int, int] | None:
        """Return offset, in bits, and type; also of those in anonymous members."""
        _, entries = self._read_head(at)
        (info,) = struct.unpack_from("<I", self._data, at + 4)
        for cell in range(at + 12, at + 12 + 12 * entries, 12):
            kind, bits = struct.unpack_from("<II", self._data, cell + 4)
            offset = bits & 0xFFFFFF if info >> 31 else bits
            if (member_name := self._read_name(cell)) == name:
                return offset, kind
            inner = self._find_type(kind)
            if not member_name and self._read_head(inner)[0] in (STRUCT, UNION):
                nested = self._find_member(inner, name)
                if nested:
                    return offset + nested[0], nested[1]
        return None

    def has_member(self, path: str) -> bool:
        """Return whether there is struct.member."""
        try:
            return bool(self._find_path(path))
        except BulkmmError:
            return False

    def offset_of(self, path: str) -> int:
        """Return the offset of struct.member, in bytes."""
        return self._find_path(path)[0] // 8

    def bit_of(self, path: str) -> int:
        """Return the offset of struct.member, in bits; -1 if there is none."""
        return self._find_path(path)[0] if self.has_member(path) else -1

    def _find_path(self, path: str) -> tuple[int, int]:
        struct_name, _, member = path.partition(".")
        number = self._structs.get(self._find_name(struct_name))
        location = (
            self._find_member(self._find_type(number), member) if number else None
        )
        if not location:
            raise BulkmmError(f"the kernel's BTF has no {path}")
        return location

    def enumerator_value(self, name: str) -> int:
        """Return the value of an enumerator."""
        place = self._find_name(name)
        for at in self._enums:
            kind, entries = self._read_head(at)
            step = PER_ENTRY[kind]
            for cell in range(at + 12, at + 12 + step * entries, step):
                if struct.unpack_from("<I", self._data, cell)[0] == place:
                    form = "<i" if kind == ENUM else "<q"
                    return int(struct.unpack_from(form, self._data, cell + 4)[0])
        raise BulkmmError(f"the kernel's BTF has no {name}")

    def size(self, path: str) -> int:
        """Return the bytes of a struct or of a member of one."""
        if "." in path:
            return self._size_of(self._find_path(path)[1])
        if number := self._structs.get(self._find_name(path)):
            return self._size_of(number)
        raise BulkmmError(f"the kernel's BTF has no struct {path}")

    def _size_of(self, number: int) -> int:
        at = self._find_type(number)
        kind, _ = self._read_head(at)
        if kind == POINTER:
            return 8
        if kind == ARRAY:
            element, _, count = struct.unpack_from("<III", self._data, at + 12)
            return self._size_of(element) * int(count)
        value = self._read_target(at)
        return self._size_of(value) if kind in MODIFIERS else value

    def prototypes_of(self, function: str) -> list[str]:
        """Return the prototypes of the functions of this name, in C."""
        return sorted(
            map(self._format_type, self._functions.get(self._find_name(function), ()))
        )

    def list_obstacles(self, path: Requirements, wanted: Prototypes) -> list[str]:
        """Return why a path cannot attach to this kernel; see paths.def."""
        missing, mismatches = self.compare_prototypes(path.needed, wanted)
        absent = [f"{names}: none" for names in missing]
        return [
            *absent,
            *mismatches,
            *self.compare_prototypes(path.optional, wanted)[1],
        ]

    def compare_prototypes(
        self, groups: Iterable[list[str]], wanted: Prototypes
    ) -> tuple[list[str], list[str]]:
        """Return which functions are missing, and which have other types."""
        missing, mismatches = [], []
        for group in groups:
            available = {name: self.prototypes_of(name) for name in group}
            if not any(available.values()):
                missing.append(" or ".join(available))
            mismatches += [
                f"{name}: {prototype}"
                for name, prototypes in available.items()
                for prototype in prototypes
                if prototype not in wanted[name]
            ]
        return missing, mismatches

    def _format_type(self, number: int) -> str:
        at = self._find_type(number)
        if not number:
            return "void"
        kind, entries = self._read_head(at)
        if kind == PROTOTYPE:
            cells = range(at + 12, at + 12 + 8 * entries, 8)
            numbers = (struct.unpack_from("<I", self._data, at + 4)[0] for at in cells)
            parameters = ", ".join(map(self._format_type, numbers))
            return f"{self._format_type(self._read_target(at))} ({parameters})"
        if kind == POINTER:
            to = self._format_type(self._read_target(at))
            return f"{to}*" if to.endswith("*") else f"{to} *"
        if kind in TRANSPARENT:
            return WORDS.get(kind, "") + self._format_type(self._read_target(at))
        return WORDS.get(kind, "") + self._read_name(at)
