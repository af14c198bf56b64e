# SPDX-License-Identifier: GPL-2.0-only
"""Who calls a hooked function, counted by the module and by the command alike."""

import struct
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from programs import run_program

from bench.kernel import callers, image_calls
from bulkmm.control import requirements
from lab.machine.arch import ARCHES

ROOT = Path(__file__).resolve().parents[2]
MODEL = ROOT / "tests/module/callersim.c"
FLAGS = ["-std=gnu11", "-O2", "-g", "-Wall", "-Wextra", "-Werror"]
FLAGS += ["-Wno-missing-field-initializers"]  # as the kernel has it
# headers that programs have not
STUBBED = ("linux/bitops.h", "linux/sizes.h", "linux/slab.h", "asm/cpufeature.h")
BASE = 0x20000000
SPACING = 0x400  # of functions
HOOKED = "set_zone_contiguous"
CALLERS = ("move_pfn_range_to_zone", "remove_pfn_range_from_zone")
LATER = "memory_block_online"  # calls it in 7.4
NEW, MISSING = -78, -67

Call = tuple[str, int, str]  # by which function, where in it, how
Verdict = tuple[int, str]  # errno and what it is about
Encode = Callable[[str, int, int], bytes]


def encode_x86(how: str, at: int, to: int) -> bytes:
    code = {"call": b"\xe8", "jump": b"\xe9", "jne": b"\x0f\x85", "lea": b"\x8d\x3d"}
    return code[how] + struct.pack("<i", to - at - len(code[how]) - 4)


def encode_arm64(how: str, at: int, to: int) -> bytes:
    code = {"call": 0x94000000, "jump": 0x14000000}[how]
    return struct.pack("<I", code | ((to - at) >> 2) & 0x3FFFFFF)


ENCODE: dict[str, Encode] = {"x86_64": encode_x86, "arm64": encode_arm64}
AS_TRIED = [(CALLERS[0], 0x40, "call"), (CALLERS[1], 0x80, "jump")]


@pytest.fixture(scope="module", params=ENCODE)
def program(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    place = tmp_path_factory.mktemp("callersim")
    for folder in ("linux", "asm"):
        (place / folder).mkdir()
    for name in STUBBED:
        (place / name).touch()
    where = ["-DCONFIG_ARM64"] if request.param == "arm64" else []
    target = place / request.param
    command = ["cc", *FLAGS, *where, f"-I{place}", str(MODEL), "-o", str(target)]
    subprocess.run(command, check=True)
    return target


def check_calls(
    program: Path, calls: Sequence[Call], names: Sequence[str] = ()
) -> tuple[Verdict, list[str]]:
    """Return the module's verdict on a text with these calls, and the command's."""
    functions = [HOOKED, *CALLERS, LATER, f"{CALLERS[0]}.cold", *names]
    places = {name: BASE + SPACING * i for i, name in enumerate(functions)}
    lines = [(BASE, "_stext"), *((at, name) for name, at in places.items())]
    end = BASE + SPACING * len(functions)
    text = bytearray(SPACING * len(functions))
    for name, offset, how in calls:
        at = places[name] + offset
        code = ENCODE[program.name](how, at, places[HOOKED])
        text[at - BASE : at - BASE + len(code)] = code
    lines += [(end, "_etext")]
    (program.parent / "text").write_bytes(text)
    symbols = "".join(f"{at:x} {name}\n" for at, name in lines[1:])
    (program.parent / "symbols").write_text(f"{BASE:x} _stext\n{symbols}")
    files = [str(program.parent / name) for name in ("text", "symbols")]
    result = run_program([str(program), *files, HOOKED], check=True)
    code = np.frombuffer(bytes(text), np.uint8)
    image = image_calls.Text("7.3.4", BASE, code, lines[1:], program.name == "arm64")
    err, subject = result.stdout.split()
    return (int(err), subject), image_calls.list_callers(image)[HOOKED].split()


def test_callers_as_on_kernels_that_were_tried(program: Path) -> None:
    assert check_calls(program, AS_TRIED) == ((0, "-"), [*CALLERS])
    # the part that a compiler split off, a second call, and one of itself
    more = [(f"{CALLERS[0]}.cold", 4, "call"), (CALLERS[0], 0x60, "jump")]
    more += [(HOOKED, 0x20, "jump")]
    assert check_calls(program, [*AS_TRIED, *more]) == ((0, "-"), [*CALLERS])


def test_a_call_that_has_moved(program: Path) -> None:
    """As in Linux 7.4."""
    new = f"{LATER}->{HOOKED}"
    moved = [(LATER, 0x10, "call")]
    assert check_calls(program, moved) == ((NEW, new), [LATER])
    assert check_calls(program, [*AS_TRIED, *moved])[0] == (NEW, new)
    missing = f"{CALLERS[1]}->{HOOKED}"
    assert check_calls(program, AS_TRIED[:1])[0] == (MISSING, missing)
    assert check_calls(program, [])[0] == (MISSING, f"{CALLERS[0]}->{HOOKED}")


def test_calls_are_found_wherever_they_are(program: Path) -> None:
    is_arm = program.name == "arm64"
    for offset in range(0, 16, 4 if is_arm else 1):
        for how in ("call", "jump") if is_arm else ("call", "jump", "jne"):
            pair = [(CALLERS[0], offset, how), (CALLERS[1], SPACING - 8 - offset, how)]
            assert check_calls(program, pair) == ((0, "-"), [*CALLERS]), (offset, how)
    # the text's last bytes
    last = [(CALLERS[0], 0, "call"), ("last", SPACING - (4 if is_arm else 6), "call")]
    verdict = check_calls(program, last, ("last",))
    assert verdict == ((NEW, f"last->{HOOKED}"), ["last", CALLERS[0]])
    if not is_arm:  # an address is no call
        addressed = [*AS_TRIED, (LATER, 0x10, "lea")]
        assert check_calls(program, addressed) == ((0, "-"), [*CALLERS])


def test_the_table_has_each_series_as_the_command_writes_it() -> None:
    text = callers.TABLE.read_text()
    rows, releases = callers.read_table(text)
    assert callers.format_table(rows, releases) == text
    for arch in ARCHES:
        for series in requirements.read_table(arch.name).tested:
            kernel = f"{series}-cloud-{arch.debian}"
            for function in (HOOKED, "memmap_init_zone_device"):
                kernels = set().union(*rows[function].values())
                assert kernel in kernels, f"bulkmm lab callers {series} adds it"
