# SPDX-License-Identifier: GPL-2.0-only
"""The Debian root that builds the module, runs QEMU and becomes the guest.

One root serves all three. mmdebstrap makes it in the cache, keyed by package list
and suite. It is entered in private mount and PID namespaces, so that nothing
stays mounted or running afterwards.
"""

import os
import re
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bulkmm.shell import child
from bulkmm.shell.errors import BulkmmError
from bulkmm.shell.progress import Progress
from lab.machine import versions
from lab.paths import claim_path, content_key, made_whole, need_space

SUITE = "trixie"
SUITES = (SUITE, f"{SUITE}-updates", f"{SUITE}-backports")
OLDER = "bookworm"  # for its own kernel
SPACE = 3_000_000_000  # root, three kernels with headers, builds
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
# qemu-user has 465 MB of static emulators, one per kind of CPU
DPKG_OPTIONS = (
    "path-exclude=/usr/bin/qemu-*",
    "path-include=/usr/bin/qemu-aarch64",
    # five firmwares of 64 MB
    "path-exclude=/usr/share/AAVMF/*",
    "path-include=/usr/bin/qemu-system-aarch64",
    "path-include=/usr/bin/qemu-system-x86_64",
)
# options for reaching the mirror, which the root's apt needs too
APT_OPTIONS = (
    "Acquire::Check-Valid-Until",
    "Acquire::Check-Date",
    "Acquire::http::Proxy",
    "Acquire::https::Proxy",
)
INSTALLED = ("dpkg-query", "-W", "-f", "${Package} ${Version}\\n")


@dataclass(frozen=True)
class DebianRoot:
    """A Debian root; ``var`` is the lab's own directory in it."""

    path: Path
    suite: str = SUITE

    @property
    def var(self) -> Path:
        """Return the lab's own directory in the root."""
        return self.path / "var/lib/bulkmm"

    def inner(self, path: Path) -> str:
        """Return a path below the root as the root's programs see it."""
        return f"/{path.relative_to(self.path)}"

    def enter(self, argv: Sequence[str]) -> list[str]:
        """Return the command line that runs a command in the root."""
        proc = f"--mount-proc={self.path}/proc"
        return [*child.ALONE, proc, "chroot", str(self.path), *argv]

    def run(self, argv: Sequence[str], limit: float = 300) -> str:
        """Run a command in the root and return its output."""
        return child.run_child(self.enter(argv), limit)


def apt_source() -> tuple[str, Path | None]:
    """Return the Debian mirror and the keyring of the host's apt."""
    rows = sorted(_host_rows(), key=lambda row: row[0] != "Debian")
    _, mirror, entry = rows[0] if rows else ("", "", "")
    mirror = os.environ.get("BULKMM_DEBIAN_MIRROR", mirror)
    keyring = _signed_by(Path(entry.rpartition(":")[0]))
    if override := os.environ.get("BULKMM_DEBIAN_KEYRING"):
        keyring = Path(override)
    if not mirror:
        raise BulkmmError(
            "apt names no Debian mirror here: set BULKMM_DEBIAN_MIRROR to its URL"
        )
    if keyring and not keyring.is_file():
        raise BulkmmError(f"the keyring {keyring} does not exist")
    return mirror, keyring


def list_sources(suites: Iterable[str], *secured: str) -> list[str]:
    """Return apt's lines of suites and, for some, of their security updates."""
    mirror, _ = apt_source()
    updates = next((row[1] for row in _host_rows() if row[0] == "Debian-Security"), "")
    lines = [f"deb {mirror} {suite} main" for suite in suites]
    return lines + [f"deb {updates} {one}-security main" for one in secured if updates]


def list_kernel_suites() -> dict[str, str]:
    """Return files of a root's apt, by place: for kernels of security updates, too.

    And of an older suite. Nothing is installed from these as long as the root's own
    suites have it.
    """
    lines = list_sources([OLDER], OLDER, SUITE)
    pin = "Package: *\nPin: release n={}\nPin-Priority: 1\n"
    names = (OLDER, f"{OLDER}-security", f"{SUITE}-security")
    return {
        "etc/apt/sources.list.d/bulkmm-older.list": "\n".join(lines) + "\n",
        "etc/apt/preferences.d/bulkmm-older": "\n".join(map(pin.format, names)),
    }


def _host_rows() -> list[list[str]]:
    """Return label, mirror and configuration file and line of all apt sources."""
    if not shutil.which("apt-get"):
        return []
    fields = "$(LABEL)|$(REPO_URI)|$(SOURCESENTRY)"
    output = child.run_child(
        ["apt-get", "indextargets", "--format", fields, "Created-By: Packages"], 30
    )
    rows = [line.split("|") for line in output.splitlines()]
    return [row for row in rows if len(row) == fields.count("|") + 1]


def _signed_by(entry: Path) -> Path | None:
    """Return the keyring that a sources file names, else Debian's own."""
    text = entry.read_text(encoding="utf-8") if entry.is_file() else ""
    match = re.search(r"signed-by\s*[:=]\s*(/[^\s\],]+)", text, re.IGNORECASE)
    keyring = Path(match[1]) if match else KEYRING
    return keyring if keyring.is_file() else None


def _mmdebstrap(
    to: DebianRoot, names: Sequence[str], architectures: str, keyring: Path | None
) -> list[str]:
    lines = list_sources([OLDER], OLDER) if to.suite == OLDER else list_sources(SUITES)
    argv = [*child.ALONE, "--mount-proc", "mmdebstrap", "--mode=root"]
    argv += ["--variant=apt", "--skip=cleanup/apt/lists"]
    argv += [f"--architectures={architectures}"]
    settings = child.run_child(["apt-config", "dump"], 30).splitlines()
    argv += [f"--aptopt={li}" for li in settings if li.split(" ")[0] in APT_OPTIONS]
    argv += [f"--dpkgopt={option}" for option in DPKG_OPTIONS]
    argv += [f"--keyring={keyring}"] if keyring else []
    argv += [f"--setup-hook={versions.make_hook()}"] if to.suite == SUITE else []
    return [*argv, f"--include={','.join(names)}", to.suite, str(to.path), *lines]


def locate_root(cache: Path) -> DebianRoot:
    """Return the root for this package list; it need not exist yet."""
    words = (word for pair in versions.read_packages().items() for word in pair)
    return DebianRoot(cache / f"root-{content_key([], *words, *SUITES, *DPKG_OPTIONS)}")


def ensure_root(cache: Path, progress: Progress) -> DebianRoot:
    """Return the root, made if the cache has none for this package list."""
    for partial in cache.glob("*.part"):  # from a killed run
        shutil.rmtree(partial)
    label = f"the Debian root ({SUITE})"
    return install_root(
        locate_root(cache), [*versions.read_packages()], label, progress, "amd64,arm64"
    )


def install_root(
    root: DebianRoot,
    names: Sequence[str],
    label: str,
    progress: Progress,
    architectures: str = "amd64",
) -> DebianRoot:
    """Return a root of Debian packages, made if it is not there.

    Those of an older package list go, unless something is in use.
    """
    if not root.path.is_dir():
        _make(root, names, label, progress, architectures)
        kind = root.path.name.rpartition("-")[0]
        with claim_path(root.path.parent) as unused:
            for old in root.path.parent.glob(f"{kind}-*") if unused else ():
                if old != root.path:
                    shutil.rmtree(old)
    return root


def _make(
    root: DebianRoot,
    names: Sequence[str],
    label: str,
    progress: Progress,
    architectures: str,
) -> None:
    """Make a root, atomically."""
    for tool in ("mmdebstrap", "unshare", "setpriv", "chroot"):
        if not shutil.which(tool):
            raise BulkmmError(f"{tool} is not installed: apt-get install {tool}")
    need_space(SPACE, label)
    mirror, keyring = apt_source()
    with progress.step(f"making {label}"), made_whole(root.path) as part:
        try:
            to = DebianRoot(part, root.suite)
            child.run_child(_mmdebstrap(to, names, architectures, keyring), 1200)
        except child.ChildError as error:
            raise BulkmmError(
                f"{label} could not be made from {mirror} "
                f"(BULKMM_DEBIAN_MIRROR names another mirror): {_reason(error)}"
            ) from error
        if keyring:
            trusted = part / "etc/apt/trusted.gpg.d" / f"bulkmm{keyring.suffix}"
            shutil.copy(keyring, trusted)
        (part / "var/lib/bulkmm").mkdir(parents=True)
        has = DebianRoot(part).run(INSTALLED)
    if root.suite == SUITE and (mismatches := versions.list_mismatches(has)):
        progress.note(f"pinned, but the archive no longer has them: {mismatches}")


def _reason(error: child.ChildError) -> str:
    """Return the first error of apt or mmdebstrap: it has the cause, unlike "Err:"."""
    errors = re.findall(r"^E: *(.+)$", error.output, re.MULTILINE)
    return errors[0] if errors and not error.timed_out else str(error)
