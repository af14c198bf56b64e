# SPDX-License-Identifier: GPL-2.0-only
"""Running a guest under QEMU, and bringing home what it reported.

QEMU runs in the root, in a mount and process name space of its own. Its
persistent memory is anonymous, so nothing is left behind however it ends, and
huge pages keep the host's share of each fault small. Results and the kernel
log come over virtio-serial ports kept as files.
"""

import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from bulkmm.errors import BulkmmError, GuestError
from bulkmm.lab import child
from bulkmm.lab.choices import CPUS
from bulkmm.lab.machine import klog
from bulkmm.lab.machine.arch import X86_64, Arch
from bulkmm.lab.machine.root import Root
from bulkmm.lab.paths import claimed

LABEL = 2 << 20  # label area; the rest of the module stays 2 MiB aligned
HOT_BLOCK = 128 << 20  # that is plugged and unplugged: a memory block, not a part
ENTER = 'mount --rbind /dev "$1/dev" && root=$1 && shift && exec chroot "$root" "$@"'
# the kernel's tests of its ciphers are a fifth of the work of a boot
CMDLINE = "loglevel=5 panic=-1 log_buf_len=1M cryptomgr.notests"
POLL = 0.05
SILENT = 60.0  # s that a guest may say nothing; more where its limit is longer


@dataclass(frozen=True)
class Hot:
    """Memory that a guest can be given while it runs, and its memory nodes."""

    plug: int = 0  # bytes of a virtio-mem device, none of them plugged at first
    node: int = 0  # of that device
    nodes: int = 1  # persistent memory is the last one's
    shared_out: bool = False  # memory and CPUs over the nodes; else the first's


@dataclass(frozen=True)
class Guest:
    """A virtual machine to be run once."""

    image: Path
    initramfs: Path
    memory: int  # MiB
    pmem: int = 0  # bytes of persistent memory
    accel: str = "tcg"
    words: str = ""  # for the kernel besides CMDLINE
    arch: Arch = X86_64
    cpu: str = ""  # none: the architecture's default
    cpus: int = CPUS
    counted: bool = False  # TCG: its clock counts instructions (see _accelerator)
    disk: Path | None = None  # what is written to it is forgotten
    plugin: Path | None = None  # TCG: counts the work of what the guest marks
    hot: Hot = field(default_factory=Hot)
    devices: tuple[str, ...] = ()


@dataclass
class Outcome:
    """What a guest left behind; ``seen`` is told of every event."""

    seen: Callable[[dict[str, Any]], None]
    events: list[dict[str, Any]] = field(default_factory=list)
    console: str = ""
    log: str = ""
    work: list[list[int]] = field(default_factory=list)  # by record
    peak_rss: int = 0
    seconds: float = 0.0

    def of(self, event: str, **wanted: object) -> list[dict[str, Any]]:
        """Return the events of one kind whose fields have these values, in order."""
        kind = {"event": event, **wanted}.items()
        return [e for e in self.events if all(e.get(k) == v for k, v in kind)]


@contextmanager
def run_directory(root: Root, *, keep: bool) -> Iterator[Path]:
    """Return a directory for a run's files, removed afterwards unless kept.

    To be entered by who holds the cache: what nobody uses is removed.
    """
    runs = root.var / ("kept" if keep else "runs")
    runs.mkdir(exist_ok=True)
    if not keep:
        _remove_left(runs)
    run = Path(tempfile.mkdtemp(dir=runs))
    with claimed(run):
        try:
            yield run
        finally:
            if not keep:
                shutil.rmtree(run)


def _remove_left(runs: Path) -> None:
    """Remove what runs that were killed have left; one may be ending right now."""
    for run in runs.iterdir():
        with suppress(FileNotFoundError), claimed(run) as left:
            if left:
                shutil.rmtree(run)


def qemu_version(root: Root, arch: Arch) -> str:
    """Return the version of the root's QEMU."""
    said = root.run([arch.qemu, "--version"])
    return said.splitlines()[0].removeprefix("QEMU emulator version ")


def _machine(guest: Guest) -> list[str]:
    """Return the machine, with the memory devices that the guest has."""
    arch, size, hot = guest.arch, guest.pmem, guest.hot
    memory = f"{guest.memory}M"
    if not size and not hot.plug:
        extra = "" if guest.cpu else arch.machine_extra
        return ["-M", arch.machine + extra, "-m", memory]
    # room above guest memory for the devices and for aligning each to 1 GiB
    devices = bool(size) + bool(hot.plug)
    most = guest.memory + (size + LABEL + hot.plug >> 20) + 2048 * devices
    argv = ["-M", f"{arch.machine},nvdimm=on", "-m", f"{memory},slots=2,maxmem={most}M"]
    argv += ["-bios", arch.firmware] if arch.firmware else []
    if hot.shared_out:
        for node in range(hot.nodes):
            backend = (
                f"memory-backend-ram,id=ram{node},size={guest.memory // hot.nodes}M"
            )
            argv += ["-object", backend]
            argv += ["-numa", f"node,nodeid={node},cpus={node},memdev=ram{node}"]
    elif hot.nodes > 1:
        argv += ["-object", f"memory-backend-ram,id=ram,size={memory}"]
        argv += ["-numa", f"node,nodeid=0,cpus=0-{guest.cpus - 1},memdev=ram"]
        for node in range(1, hot.nodes):
            argv += ["-numa", f"node,nodeid={node}"]
    if size:
        backend = f"memory-backend-ram,id=pmem,reserve=off,size={size + LABEL}"
        device = f"nvdimm,id=nvdimm,memdev=pmem,label-size={LABEL}"
        argv += ["-object", backend, "-device", f"{device},node={hot.nodes - 1}"]
    return argv


def _plugged(guest: Guest, inner: str) -> list[str]:
    """Return the device that memory is plugged into, and who does it.

    The guest asks for memory itself, as an administrator would: QEMU's monitor
    is what it finds behind a port. A port and a monitor are joined by a socket
    of which QEMU is both ends.
    """
    size, node = guest.hot.plug, guest.hot.node
    if not size:
        return []
    socket = f"{inner}/monitor"
    argv = ["-object", f"memory-backend-ram,id=hot,reserve=off,size={size}"]
    device = f"virtio-mem-pci,id=hot0,memdev=hot,node={node},block-size={HOT_BLOCK}"
    argv += ["-device", device]
    argv += ["-chardev", f"socket,id=monitor,path={socket},server=on,wait=off"]
    argv += ["-mon", "chardev=monitor,mode=readline"]
    argv += ["-chardev", f"socket,id=asks,path={socket}"]
    return [*argv, "-device", "virtserialport,chardev=asks,name=monitor"]


def _accelerator(guest: Guest) -> list[str]:
    """Return how instructions are executed, and what the guest's clock counts.

    Where bounds of time are proven, 2 ns an instruction whatever the host does
    meanwhile: no other load on it can then lengthen what the guest sees.
    """
    if guest.accel == "kvm":
        return ["-accel", "kvm"]
    if guest.counted:
        return ["-accel", "tcg,thread=single", "-icount", "shift=1,sleep=off"]
    return ["-accel", "tcg,thread=multi"]


def _cpus(guest: Guest) -> str:
    """Return how many CPUs there are; of several nodes each has its own socket."""
    if guest.hot.shared_out:
        return f"{guest.hot.nodes},sockets={guest.hot.nodes}"
    # what one of two would count while the other waits is no time of either
    return "1" if guest.counted else str(guest.cpus)


def command(guest: Guest, root: Root, run: Path) -> list[str]:
    """Return QEMU's command line, its paths as seen in the root."""
    inner = root.inner(run)
    argv = [guest.arch.qemu, *_accelerator(guest)]
    argv += ["-cpu", guest.cpu or guest.arch.cpu]
    argv += ["-smp", _cpus(guest), *_machine(guest)]
    argv += ["-display", "none", "-no-reboot", "-nic", "none", "-monitor", "none"]
    for device in guest.devices:
        argv += ["-device", device]
    argv += ["-serial", f"file:{inner}/console", "-device", "virtio-serial-pci"]
    for port in ("results", "klog"):
        argv += ["-chardev", f"file,id={port},path={inner}/{port}"]
        argv += ["-device", f"virtserialport,chardev={port},name={port}"]
    if guest.plugin:
        argv += ["-plugin", f"{root.inner(guest.plugin)},out={inner}/work"]
    argv += _plugged(guest, inner)
    if guest.disk:
        drive = f"file={root.inner(guest.disk)},format=raw,if=virtio,snapshot=on"
        argv += ["-drive", drive]
    argv += ["-kernel", root.inner(guest.image), "-initrd", root.inner(guest.initramfs)]
    words = f"console={guest.arch.console} {CMDLINE} {guest.words}"
    return [*argv, "-append", words.rstrip()]


def boot(
    guest: Guest,
    root: Root,
    run: Path,
    limit: float,
    seen: Callable[[dict[str, Any]], None] = lambda _event: None,
) -> Outcome:
    """Run a guest to its end; raise GuestError unless it ended as it should.

    One that says nothing is booted once more: an emulated one hangs, now and then,
    before it has come to anything of ours (seen in one of some hundred boots).
    """
    outcome, in_time = _once(guest, root, run, limit, seen)
    if not (in_time or outcome.events or klog.search(outcome.console)):
        outcome, in_time = _once(guest, root, run, limit, seen)
    _judge(outcome, _text(run / "qemu.log"), in_time=in_time)
    return outcome


def _once(
    guest: Guest,
    root: Root,
    run: Path,
    limit: float,
    seen: Callable[[dict[str, Any]], None],
) -> tuple[Outcome, bool]:
    """Return what a guest left behind, and if it ended in time."""
    argv = [*child.ALONE, f"--mount-proc={root.path}/proc", "sh", "-c", ENTER, "sh"]
    argv += [str(root.path), *command(guest, root, run)]
    outcome = Outcome(seen)
    start = time.monotonic()
    in_time = _follow(argv, run, limit, outcome)
    outcome.seconds = time.monotonic() - start
    outcome.console = _text(run / "console")
    outcome.log = _text(run / "klog")
    lines = _text(run / "work").splitlines()
    outcome.work = [[int(word) for word in line.split()] for line in lines]
    return outcome, in_time


def _follow(argv: list[str], run: Path, limit: float, outcome: Outcome) -> bool:
    """Read events as they come, until QEMU ends or time is up."""
    results = run / "results"
    results.write_text("")
    end = time.monotonic() + limit
    silent = time.monotonic() + min(limit, max(SILENT, limit / 3))
    with (
        (run / "qemu.log").open("w", encoding="utf-8") as output,
        child.started(argv, output) as qemu,
        results.open(encoding="utf-8", errors="replace") as lines,
    ):
        running = True
        while running and time.monotonic() < (end if outcome.events else silent):
            running = not _ended(qemu, outcome)
            _read_events(lines, outcome)
            time.sleep(POLL)
    return not running


def _ended(qemu: subprocess.Popen[str], outcome: Outcome) -> bool:
    """Return whether QEMU has ended; its peak memory is known only then."""
    pid, status, usage = os.wait4(qemu.pid, os.WNOHANG)
    if not pid:
        return False
    qemu.returncode = os.waitstatus_to_exitcode(status)
    # unshare, chroot and QEMU are one line of descent, QEMU the largest
    outcome.peak_rss = usage.ru_maxrss * 1024
    return True


def _read_events(lines: IO[str], outcome: Outcome) -> None:
    while True:
        at = lines.tell()
        line = lines.readline()
        if not line.endswith("\n"):  # not there yet, or not whole yet
            lines.seek(at)
            return
        try:
            event = json.loads(line)
        except ValueError as error:
            raise GuestError(f"the guest reported no JSON: {line!r}") from error
        outcome.events.append(event)
        outcome.seen(event)


def _text(path: Path) -> str:
    if not path.is_file():
        return ""
    text = path.read_text(encoding="utf-8", errors="replace")
    return text.replace("\r\n", "\n")


def _judge(outcome: Outcome, qemu_said: str, *, in_time: bool) -> None:
    """Raise unless the guest came to its end with a clean kernel log."""
    shown = klog.last_lines(outcome.log or outcome.console or qemu_said)
    if not outcome.console and not outcome.events and in_time:
        cause = (qemu_said.strip() or "it said nothing").splitlines()[0]
        raise BulkmmError(f"QEMU did not start a guest: {cause}")
    if bad := klog.search(outcome.console) + klog.search(outcome.log):
        raise GuestError(f"the kernel log has {bad[0].strip()!r}; its end:\n{shown}")
    if failed := outcome.of("fail"):
        raise GuestError(f"the guest failed: {failed[0]['what']}")
    if not in_time:
        raise GuestError(f"the guest ran out of time; its log ends with\n{shown}")
    if not outcome.of("end"):
        raise GuestError(f"the guest ended early; its log ends with\n{shown}")
