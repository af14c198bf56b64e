# SPDX-License-Identifier: GPL-2.0-only
"""Run a guest under QEMU and collect its reports.

QEMU runs in the root, in its own mount and PID namespaces. Persistent memory is
anonymous, so nothing is left behind however QEMU ends, and on huge pages, which
keep the host's share of each fault small. Results and the kernel log arrive over
virtio-serial ports backed by files.
"""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from bulkmm.shell import child
from bulkmm.shell.errors import BulkmmError, GuestError
from bulkmm.shell.progress import Observer
from lab.choices import CPUS
from lab.machine import klog
from lab.machine.arch import X86_64, Arch
from lab.machine.root import DebianRoot
from lab.paths import make_scratch

LABEL = 2 << 20  # label area; the rest of the module stays 2 MiB aligned
HOT_BLOCK = 128 << 20  # plugged and unplugged in whole memory blocks
ENTER = 'mount --rbind /dev "$1/dev" && root=$1 && shift && exec chroot "$root" "$@"'
# Emulated on a busy host, a CPU may stand still for longer than the kernel's limits.
PATIENT = "watchdog_thresh=60 rcupdate.rcu_cpu_stall_timeout=150"
# the kernel's crypto self-tests are a fifth of a boot's work
CMDLINE = f"loglevel=5 panic=-1 log_buf_len=1M cryptomgr.notests {PATIENT}"
POLL = 0.05
SILENT = 300.0  # s for which a guest may report nothing: emulated, on a busy host
INSTRUCTION_NS = 2  # of a clock that counts instructions
BOOTING = 3  # part of it before the first report: until then a guest only boots


@dataclass(frozen=True)
class Hot:
    """Memory that can be hotplugged into a guest, and its memory nodes."""

    plug: bool = False  # a virtio-mem device, initially unplugged
    node: int = 0  # of that device
    cxl: bool = False  # a CXL device; the kernel makes a node for its window
    nodes: int = 1  # persistent memory is on the last one
    shared_out: bool = False  # spread memory and CPUs over the nodes
    bare: bool = False  # node 2 of 3 has memory and no CPU; near node 1


@dataclass(frozen=True)
class Guest:
    """A virtual machine for one run."""

    image: Path
    initramfs: Path
    memory: int  # MiB
    pmem: bool = False  # a device of persistent memory
    size: int = 0  # bytes of each of its devices
    accel: str = "tcg"
    words: str = ""  # kernel parameters besides CMDLINE
    arch: Arch = X86_64
    cpu: str = ""  # "": the architecture's default
    cpus: int = CPUS
    icount: bool = False  # TCG: its clock counts instructions (see _accelerator)
    disk: Path | None = None  # writes are discarded
    hot: Hot = field(default_factory=Hot)
    devices: tuple[str, ...] = ()


@dataclass
class Outcome:
    """What a guest reported; ``on_event`` is called for every event."""

    events: list[dict[str, Any]] = field(default_factory=list)
    console: str = ""
    log: str = ""
    icount: bool = False  # its clock counts instructions
    peak_rss: int = 0
    seconds: float = 0.0
    code: int | None = None  # of QEMU; None: it was stopped
    on_event: Observer = lambda _event: None

    def of(self, event: str, **wanted: object) -> list[dict[str, Any]]:
        """Return events of one kind whose fields have these values, in order."""
        kind = {"event": event, **wanted}.items()
        return [e for e in self.events if all(e.get(k) == v for k, v in kind)]


@contextmanager
def run_directory(root: DebianRoot) -> Iterator[Path]:
    """Yield a directory for a run's files, removed afterwards.

    The caller must hold the cache's lock: unused directories are removed.
    """
    runs = root.var / "runs"
    runs.mkdir(exist_ok=True)
    with make_scratch("", runs) as run:  # all there is ours
        yield run


def qemu_version(root: DebianRoot, arch: Arch) -> str:
    """Return the version of the root's QEMU."""
    output = root.run([arch.qemu, "--version"])
    return output.splitlines()[0].removeprefix("QEMU emulator version ")


def _machine(guest: Guest) -> list[str]:
    """Return the options of the machine and its memory devices."""
    arch, size, hot = guest.arch, guest.size, guest.hot
    memory = f"{guest.memory}M"
    if hot.cxl:
        window = f"cxl-fmw.0.targets.0=cxl,cxl-fmw.0.size={size}"
        machine = ["-M", f"{arch.machine},cxl=on,{window}", "-m", memory]
        return [*machine, *_nodes(guest)]
    if not guest.pmem and not hot.plug:
        extra = "" if guest.cpu or hot.bare else arch.machine_extra
        return ["-M", arch.machine + extra, "-m", memory, *_nodes(guest)]
    # room above guest memory for the devices and for aligning each to 1 GiB
    devices = guest.pmem + hot.plug
    most = guest.memory + devices * ((size + LABEL >> 20) + 2048)
    argv = ["-M", f"{arch.machine},nvdimm=on", "-m", f"{memory},slots=2,maxmem={most}M"]
    argv += ["-bios", arch.firmware] if arch.firmware else []
    argv += _nodes(guest)
    if guest.pmem:
        backend = f"memory-backend-ram,id=pmem,reserve=off,size={size + LABEL}"
        device = f"nvdimm,id=nvdimm,memdev=pmem,label-size={LABEL}"
        argv += ["-object", backend, "-device", f"{device},node={hot.nodes - 1}"]
    return argv


def _nodes(guest: Guest) -> list[str]:
    """Return the options of the memory nodes.

    A single one is named where the kernel shall add another: without a table of
    nodes it has only one.
    """
    hot, whole, cpus = guest.hot, guest.memory, guest.cpus
    nodes: list[tuple[int, str]] = []  # MiB and CPUs
    distances: tuple[tuple[int, int, int], ...] = ()
    if hot.bare:
        half, part = cpus // 2, whole // 4
        nodes = [(whole - 2 * part, f"0-{half - 1}"), (part, f"{half}-{2 * half - 1}")]
        nodes.append((part, ""))
        distances = ((0, 1, 20), (0, 2, 40), (1, 2, 15))
    elif hot.shared_out:
        nodes = [(whole // hot.nodes, f"{node}") for node in range(hot.nodes)]
    elif hot.nodes > 1 or hot.cxl:
        nodes = [(whole, f"0-{cpus - 1}"), *[(0, "")] * (hot.nodes - 1)]
    argv = []
    for node, (size, cpu_range) in enumerate(nodes):
        option = f"node,nodeid={node}" + (f",cpus={cpu_range}" if cpu_range else "")
        if size:
            argv += ["-object", f"memory-backend-ram,id=ram{node},size={size}M"]
            option += f",memdev=ram{node}"
        argv += ["-numa", option]
    for source, target, distance in distances:
        argv += ["-numa", f"dist,src={source},dst={target},val={distance}"]
    return argv


def _cxl(guest: Guest) -> list[str]:
    """Return the options of a CXL memory device and its host bridge.

    They come after all other devices, which QEMU would put below that bridge.
    """
    if not guest.hot.cxl:
        return []
    argv = ["-object", f"memory-backend-ram,id=cxlmem,reserve=off,size={guest.size}"]
    argv += ["-device", "pxb-cxl,id=cxl,bus=pcie.0,bus_nr=12"]
    argv += ["-device", "cxl-rp,id=cxlport,bus=cxl,chassis=0,slot=2,port=0"]
    return [*argv, "-device", "cxl-type3,bus=cxlport,volatile-memdev=cxlmem"]


def _plugged(guest: Guest, inner: str) -> list[str]:
    """Return the options of the virtio-mem device and of its control.

    The guest requests memory itself, as an administrator would, from QEMU's monitor
    behind a port. Port and monitor are joined by a socket of which QEMU is both ends.
    """
    size, node = guest.size, guest.hot.node
    if not guest.hot.plug:
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
    """Return the options of the accelerator and of the guest's clock.

    Where the clock counts, an instruction takes INSTRUCTION_NS of it, each turn of a
    string instruction too, so that load on the host changes nothing that the guest
    measures. It jumps ahead while the guest sleeps.
    """
    if guest.accel == "kvm":
        return ["-accel", "kvm"]
    if guest.icount:
        return ["-accel", "tcg,thread=single", "-icount", "shift=1,sleep=off"]
    return ["-accel", "tcg,thread=multi"]


def _cpus(guest: Guest) -> str:
    """Return the -smp option; with several nodes each has its own socket."""
    if guest.hot.shared_out:
        return f"{guest.hot.nodes},sockets={guest.hot.nodes}"
    if guest.hot.bare:
        return f"{guest.cpus // 2 * 2},sockets=2"
    # with two CPUs the clock would count one's work as the other's time
    return "1" if guest.icount else str(guest.cpus)


def make_command(guest: Guest, root: DebianRoot, run: Path) -> list[str]:
    """Return QEMU's command line, with paths as seen in the root."""
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
    argv += _plugged(guest, inner)
    if guest.disk:
        drive = f"file={root.inner(guest.disk)},format=raw,if=virtio,snapshot=on"
        argv += ["-drive", drive]
    argv += _cxl(guest)
    argv += ["-kernel", root.inner(guest.image), "-initrd", root.inner(guest.initramfs)]
    words = f"console={guest.arch.console} {CMDLINE} {guest.words}"
    return [*argv, "-append", words.rstrip()]


def boot_guest(
    guest: Guest,
    root: DebianRoot,
    run: Path,
    silent: float = SILENT,
    on_event: Observer = lambda _event: None,
) -> Outcome:
    """Run a guest to its end; raise GuestError unless it ended as it should.

    A guest that reports nothing for ``silent`` seconds hangs. One that has never
    reported is booted once more: an emulated one sometimes hangs before it reaches
    our code (seen in about one of a hundred boots).
    """
    outcome = _once(guest, root, run, silent, on_event)
    hangs = outcome.code is None and not outcome.events
    if hangs and not klog.find_faults(outcome.console):
        outcome = _once(guest, root, run, silent, on_event)
    _judge(outcome, _text(run / "qemu.log"), silent)
    return outcome


def _once(
    guest: Guest, root: DebianRoot, run: Path, silent: float, on_event: Observer
) -> Outcome:
    argv = [*child.ALONE, f"--mount-proc={root.path}/proc", "sh", "-c", ENTER, "sh"]
    argv += [str(root.path), *make_command(guest, root, run)]
    outcome = Outcome(icount=guest.icount and guest.accel == "tcg", on_event=on_event)
    start = time.monotonic()
    _follow(argv, run, silent, outcome)
    outcome.seconds = time.monotonic() - start
    outcome.console = _text(run / "console")
    outcome.log = _text(run / "klog")
    return outcome


def _follow(argv: list[str], run: Path, silent: float, outcome: Outcome) -> None:
    """Read events as they arrive, until QEMU ends or none has come for too long."""
    results = run / "results"
    results.write_text("")
    end = time.monotonic() + silent / BOOTING
    with (
        (run / "qemu.log").open("w", encoding="utf-8") as output,
        child.start_child(argv, output) as qemu,
        results.open(encoding="utf-8", errors="replace") as lines,
    ):
        running = True
        while running and time.monotonic() < end:
            running = not _reap(qemu, outcome)
            if _read_events(lines, outcome):
                end = time.monotonic() + silent
            time.sleep(POLL)


def _reap(qemu: subprocess.Popen[str], outcome: Outcome) -> bool:
    """Return whether QEMU has ended; if so, record how, and its peak memory."""
    pid, status, usage = os.wait4(qemu.pid, os.WNOHANG)
    if not pid:
        return False
    outcome.code = qemu.returncode = os.waitstatus_to_exitcode(status)
    # unshare, chroot and QEMU are one process chain; QEMU is the largest
    outcome.peak_rss = usage.ru_maxrss * 1024
    return True


def _read_events(lines: IO[str], outcome: Outcome) -> bool:
    """Return whether there were new ones."""
    before = len(outcome.events)
    while True:
        at = lines.tell()
        line = lines.readline()
        if not line.endswith("\n"):  # missing or incomplete
            lines.seek(at)
            return len(outcome.events) > before
        try:
            event = json.loads(line)
        except ValueError as error:
            raise GuestError(f"the guest reported no JSON: {line!r}") from error
        outcome.events.append(event)
        outcome.on_event(event)


def _text(path: Path) -> str:
    if not path.is_file():
        return ""
    text = path.read_text(encoding="utf-8", errors="replace")
    return text.replace("\r\n", "\n")


def _judge(outcome: Outcome, qemu_said: str, silent: float) -> None:
    """Raise unless the guest finished with a clean kernel log."""
    tail = klog.last_lines(outcome.log or outcome.console or qemu_said)
    messages = (qemu_said.strip() or "it said nothing").splitlines()
    if not outcome.console and not outcome.events and outcome.code is not None:
        raise BulkmmError(f"QEMU did not start a guest: {messages[0]}")
    if bad := klog.find_faults(outcome.console) + klog.find_faults(outcome.log):
        raise GuestError(f"the kernel log has {bad[0].strip()!r}; its end:\n{tail}")
    if failed := outcome.of("fail"):
        raise GuestError(f"the guest failed: {failed[0]['what']}")
    if outcome.code is None:
        limit = silent if outcome.events else silent / BOOTING
        raise GuestError(
            f"the guest reported nothing for {limit:.0f} s; its log ends with\n{tail}"
        )
    if outcome.code and not outcome.of("end"):
        how = f"with code {outcome.code}"
        if outcome.code < 0:
            how = f"by {signal.Signals(-outcome.code).name}"
        raise BulkmmError(f"QEMU ended {how} before its guest did: {messages[-1]}")
    if not outcome.of("end"):
        raise GuestError(f"the guest ended early; its log ends with\n{tail}")
