# SPDX-License-Identifier: GPL-2.0-only
"""The architectures of the lab's guests: what differs between them."""

from dataclasses import dataclass

from bulkmm.control import requirements
from bulkmm.shell.errors import UsageError


@dataclass(frozen=True)
class Arch:
    """An architecture and its names for each tool."""

    name: str  # for the user and the kernel's uname
    debian: str
    series: tuple[str, ...]  # whose kernels are pinned; the first is the default
    tested: tuple[str, ...]  # that the module builds for: these and others
    triplet: str  # Debian's name for its library directory and binutils
    compiler: str
    image: str  # of a kernel, where its build leaves it
    qemu: str
    machine: str
    cpu: str
    console: str
    aligns: tuple[str, ...]  # of device memory that its kernels can map
    machine_extra: str = ""  # with this CPU, and without persistent memory
    firmware: str = ""  # that a guest with persistent memory needs
    lacks: tuple[str, ...] = ()  # modules that scenarios make do without

    @property
    def make_words(self) -> tuple[str, ...]:
        """Return what the kernel's make needs to build for it, on x86-64."""
        if self.debian == "amd64":
            return ()
        return (f"ARCH={self.name}", f"CROSS_COMPILE={self.triplet}-")


X86_64 = Arch(
    name="x86_64",
    debian="amd64",
    series=requirements.read_kernels("pinned-x86_64"),
    tested=requirements.read_kernels("tested-x86_64"),
    triplet="x86_64-linux-gnu",
    compiler="gcc-14",
    image="arch/x86/boot/bzImage",
    qemu="qemu-system-x86_64",
    machine="q35",
    cpu="max",
    console="ttyS0",
    aligns=("4K", "2M", "1G"),
)
# Only ACPI describes an NVDIMM, and ACPI needs UEFI. QEMU has no memory tags (mte)
# with pluggable memory. Architected pointer authentication uses a cipher, which
# under emulation takes more time than all the rest.
ARM64 = Arch(
    name="arm64",
    debian="arm64",
    series=requirements.read_kernels("pinned-arm64"),
    tested=requirements.read_kernels("tested-arm64"),
    triplet="aarch64-linux-gnu",
    compiler="aarch64-linux-gnu-gcc-14",
    image="arch/arm64/boot/Image",
    qemu="qemu-system-aarch64",
    machine="virt",
    cpu="max,pauth-impdef=on",
    console="ttyAMA0",
    aligns=("4K", "2M"),  # no transparent huge pages of a PUD
    machine_extra=",mte=on",
    firmware="/usr/share/qemu-efi-aarch64/QEMU_EFI.fd",
    # for pmem from the command line, and for PCs' guests and devices
    lacks=("nd_e820", "kvm_amd", "vfio_pci", "vfio_iommu_type1"),
)
ARCHES = (X86_64, ARM64)
NAMES = tuple(arch.name for arch in ARCHES)


def find_arch(name: str) -> Arch:
    """Return the architecture with this name."""
    for arch in ARCHES:
        if arch.name == name:
            return arch
    raise UsageError(f"unknown architecture {name}: give {' or '.join(NAMES)}")


def of_release(release: str) -> Arch:
    """Return the architecture of a full release (…-cloud-arm64, …-arm64-16k)."""
    words = release.split("-")
    return next(arch for arch in ARCHES if arch.debian in words)
