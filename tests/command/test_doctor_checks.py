# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm doctor``: what it checks of a kernel and its settings."""

import os
import re
import shutil

import pytest
from commandlib import Command
from doctorlib import paths_of, states_of
from fakekernel import CONFIG, RELEASE, RELEASED, Fake, load_module

from bulkmm.control import tracefs
from bulkmm.control.system_files import SystemFiles
from bulkmm.shell.errors import Exit

NOBODY = 65534
MOUNTED = "tracefs /a tracefs rw 0 0"
NEEDED = "CONFIG_DYNAMIC_FTRACE_WITH_DIRECT_CALLS"
MODULE = "/sys/module/module/parameters"


def test_all_would_attach(bulkmm: Command) -> None:
    result = bulkmm("doctor", "--json")
    assert result.code == Exit.OK
    assert {verdict for verdict, _ in paths_of(result.json).values()} == {
        "would attach"
    }
    assert set(states_of(result.json).values()) == {"ok", "care"}  # not installed
    output = bulkmm("doctor").out
    assert "memmap: would attach\n" in output
    assert "ok    kernel " in output


@pytest.mark.parametrize("name", ["CONFIG_PREEMPT_RT", "CONFIG_ARM64_16K_PAGES"])
def test_an_option_that_was_not_tested(
    kernel: Fake, bulkmm: Command, name: str
) -> None:
    kernel.write(CONFIG, f"{kernel.read(CONFIG)}\n{name}=y\n")
    result = bulkmm("doctor", "--json")
    assert result.code == Exit.VERDICT
    assert states_of(result.json)[name] == "no"
    load_module(kernel)  # somebody took the risk
    assert states_of(bulkmm("doctor", "--json").json)[name] == "care"


def test_without_proc(kernel: Fake, bulkmm: Command) -> None:
    shutil.rmtree(kernel.root / "proc")
    result = bulkmm("doctor", "--json")
    assert result.code == Exit.ENVIRONMENT
    assert states_of(result.json)["kernel.ftrace_enabled"] == "unknown"
    assert "no" not in states_of(result.json).values()


@pytest.mark.skipif(os.geteuid() != 0, reason="gives up its rights")
def test_a_directory_that_is_roots_alone(kernel: Fake) -> None:
    """As tracefs is; before Python 3.14 Path.exists() raises an error for it."""
    (kernel.root / "sys/kernel/tracing").chmod(0o700)
    os.seteuid(NOBODY)
    try:
        assert tracefs.find_tracefs(SystemFiles(kernel.root)) is None
    finally:
        os.seteuid(0)


@pytest.mark.parametrize(
    ("file", "text", "user", "words"),
    [
        ("/proc/mounts", MOUNTED, NOBODY, ("only root", "as root")),
        ("/proc/mounts", MOUNTED, 0, ("/a cannot be read", "mount")),
        ("/proc/mounts", "proc /proc proc rw 0 0", 0, ("not mounted", "mount")),
        ("/proc/filesystems", "nodev\tproc\n\text4", 0, ("kernel has none", "boot")),
        ("/proc/filesystems", "nodev\ttracefs", 0, ("not mounted", "mount")),
    ],
)
def test_why_there_is_no_tracefs(
    kernel: Fake,
    monkeypatch: pytest.MonkeyPatch,
    *,
    file: str,
    text: str,
    user: int,
    words: tuple[str, str],
) -> None:
    """One reason, the one that holds."""
    shutil.rmtree(kernel.root / "sys/kernel/tracing")
    kernel.write(file, text)
    monkeypatch.setattr(os, "geteuid", lambda: user)
    texts = tracefs.explain_absence(SystemFiles(kernel.root))
    assert all(word in text for word, text in zip(words, texts, strict=True))


@pytest.mark.parametrize(
    ("file", "text", "name", "state"),
    [
        ("/proc/sys/kernel/arch", "riscv64", "architecture", "no"),
        ("/proc/sys/kernel/osrelease", "6.0.9-amd64", "kernel", "no"),
        ("/proc/sys/kernel/osrelease", "99.1.1-amd64", "kernel", "no"),
        ("/proc/sys/kernel/ftrace_enabled", "0", "kernel.ftrace_enabled", "no"),
        ("/proc/sys/kernel/modules_disabled", "1", "kernel.modules_disabled", "no"),
        (CONFIG, "CONFIG_MODULES=y\nCONFIG_KPROBES=y", NEEDED, "no"),
        (CONFIG, f"{NEEDED}=y", "CONFIG_ZONE_DEVICE", "no"),
        ("/sys/kernel/security/lockdown", "none [integrity] x", "lockdown", "care"),
        (f"{MODULE}/sig_enforce", "Y", "module signatures", "care"),
        ("/proc/sys/kernel/osrelease", "7.1.1", "kernel", "no"),
    ],
)
def test_what_is_wrong_with_a_kernel(
    kernel: Fake, bulkmm: Command, *, file: str, text: str, name: str, state: str
) -> None:
    """What is "no" holds for all paths; what needs care is no failure."""
    kernel.write("/boot/config-7.1.1", kernel.read(CONFIG))
    kernel.write(file, text)
    result = bulkmm("doctor", "--json")
    assert result.code == (Exit.VERDICT if state == "no" else Exit.OK)
    assert states_of(result.json)[name] == state
    verdicts = paths_of(result.json).values()
    whys = [why for verdict, why in verdicts if verdict != "not needed"]
    assert whys
    assert all((name in why) is (state == "no") for why in whys)


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("/proc/sys/kernel/arch", "architecture"),
        ("/proc/sys/kernel/osrelease", "kernel"),
        ("/proc/sys/kernel/ftrace_enabled", "kernel.ftrace_enabled"),
        ("/proc/cpuinfo", "indirect branch tracking"),
        (CONFIG, "indirect branch tracking"),
        ("/sys/kernel/security/lockdown", "lockdown"),
        (CONFIG, "module signatures"),
        (CONFIG, NEEDED),
    ],
)
def test_an_empty_file_tells_nothing(
    kernel: Fake, bulkmm: Command, file: str, name: str
) -> None:
    kernel.write(file, "")
    assert states_of(bulkmm("doctor", "--json").json)[name] == "unknown"


def test_what_is_installed(kernel: Fake, bulkmm: Command) -> None:
    assert f"apt install linux-headers-{RELEASE}, then" in bulkmm("doctor").words
    kernel.write(f"/lib/modules/{RELEASE}/build/Makefile", "")
    assert "it can be built: make module" in bulkmm("doctor").words
    kernel.write(f"/lib/modules/{RELEASE}/updates/dkms/bulkmm.ko.xz", "")
    assert "updates/dkms/bulkmm.ko.xz: modprobe bulkmm" in bulkmm("doctor").words


@pytest.mark.parametrize("release", ["7.3.4-my-own", "6.12.0-45-generic"])
def test_only_a_package_that_there_is_is_advised(
    kernel: Fake, bulkmm: Command, release: str
) -> None:
    kernel.write(f"/boot/config-{release}", kernel.read(CONFIG))
    kernel.write(RELEASED, release)
    remedies = bulkmm("doctor", "--json").json["remedies"]
    assert f"/lib/modules/{release}/build points" in " ".join(remedies)
    assert "apt install" not in " ".join(remedies)


def test_where_nothing_can_be_read(kernel: Fake, bulkmm: Command) -> None:
    for name in ("proc", "sys", "boot"):
        shutil.rmtree(kernel.root / name)
    result = bulkmm("doctor")
    assert result.code == Exit.ENVIRONMENT
    assert result.out.startswith("what attaches on this kernel is unknown: too ")
    assert "\nfor this machine: unknown (too little can be read)\n" in result.out
    assert re.search(
        r"^\?  module  +the kernel does not report", result.out, re.MULTILINE
    )
    assert "apt install" not in result.out
    assert "mount -t tracefs" not in result.out  # where there is no place for it
    assert result.out.count("\n  mount /sys, or name another root by --root\n") == 1
    lines = result.out.partition("in the way:\n")[2].partition("\n\n")[0].splitlines()
    assert len(lines) == len({*lines})
    assert not [line for line in lines if line.startswith("  memmap")]


def test_a_module_that_would_be_inert(kernel: Fake, bulkmm: Command) -> None:
    kernel.write("/proc/cmdline", "quiet bulkmm.inert=1")
    result = bulkmm("doctor", "--json")
    assert result.code == Exit.VERDICT
    assert "modprobe bulkmm inert=0" in result.json["remedies"]
    load_module(kernel)  # with inert=0: its hooks say what is so
    assert "bulkmm.inert" not in states_of(bulkmm("doctor", "--json").json)
