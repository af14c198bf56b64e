# SPDX-License-Identifier: GPL-2.0-only
"""Which of a kernel's modules a guest loads, and in which order."""

from pathlib import Path

import pytest

from bulkmm.shell.errors import BulkmmError
from lab.machine import kernel_modules
from lab.machine.kernels import Kernel
from lab.machine.root import DebianRoot

# as depmod writes them for 6.12.117+deb13-amd64
FILES = {
    "modules.dep": """\
kernel/arch/x86/crypto/crc32c-intel.ko.xz:
kernel/crypto/crc32c_generic.ko.xz:
kernel/drivers/cxl/cxl_acpi.ko.xz:
kernel/drivers/dax/hmem/dax_hmem.ko.xz: kernel/drivers/cxl/cxl_acpi.ko.xz
kernel/drivers/net/a.ko.xz:
kernel/drivers/net/b.ko.xz:
kernel/drivers/vfio/vfio.ko.xz:
kernel/fs/ext4/ext4.ko.xz: kernel/fs/jbd2/jbd2.ko.xz kernel/lib/crc16.ko.xz
kernel/fs/jbd2/jbd2.ko.xz:
kernel/lib/crc16.ko.xz:
""",
    "modules.builtin": "kernel/drivers/cxl/cxl_port.ko\n",
    "modules.alias": """\
# Aliases extracted from modules themselves.
alias crypto-crc32c-intel crc32c_intel
alias crypto-crc32c crc32c_intel
alias crypto-crc32c-generic crc32c_generic
alias crypto-crc32c crc32c_generic
""",
    "modules.softdep": """\
# Soft dependencies extracted from modules themselves.
softdep jbd2 pre: crypto-crc32c
softdep ext4 pre: crypto-crc32c
softdep cxl_acpi pre: cxl_port
softdep vfio post: vfio_iommu_type1
softdep a pre: b post: vfio
softdep b pre: a no-such-module
""",
}


@pytest.fixture
def kernel(tmp_path: Path) -> Kernel:
    kernel = Kernel(DebianRoot(tmp_path), "6.12.117+deb13-amd64")
    kernel.modules.mkdir(parents=True)
    for name, text in FILES.items():
        (kernel.modules / name).write_text(text)
    return kernel


@pytest.mark.parametrize(
    ("name", "loaded"),
    [
        ("vfio", "vfio"),
        ("cxl_port", ""),
        ("dax_hmem", "cxl_acpi dax_hmem"),
        ("ext4", "crc16 crc32c_generic jbd2 ext4"),  # or no ext4 can be mounted
        ("a", "b a"),
    ],
)
def test_what_a_module_needs_is_loaded_before_it(
    kernel: Kernel, name: str, loaded: str
) -> None:
    paths = kernel_modules.list_modules(kernel, (name,))
    assert " ".join(map(kernel_modules._name, paths)) == loaded


def test_an_unknown_module_is_an_error(kernel: Kernel) -> None:
    with pytest.raises(BulkmmError, match="has no module ext5"):
        kernel_modules.list_modules(kernel, ("ext4", "ext5"))
