# SPDX-License-Identifier: GPL-2.0-only
"""``bulkmm bench kernel``: a kernel's own code against the module's: the options."""

from bulkmm.lab.machine import kinds
from bulkmm.lab.machine.arch import X86_64

SUBJECTS = ("memmap", "clear", "copy", "vmap")  # served by the module
ALONE = ("hotplug",)  # not hooked where this bench can measure
DOES = "time a stock kernel's own code against the module's"
ABOUT = """Run a stock kernel's own machine code, and the built module's, in a process
on this CPU: no privilege, nothing loaded, no virtual machine. The module attaches to
the kernel's functions as it would there, and all that it writes is compared with what
the kernel's own code writes, in every round. With --against, another kernel's code
runs in turn with this one's, in place of the module."""
EXAMPLE = "bulkmm bench kernel memmap --kernel 7.3 --quick"
TABLE = f"""
[subject:{{{",".join((*SUBJECTS, *ALONE, "all"))}}}]  run these functions (default: all
    that the module serves)
--kernel {"|".join(X86_64.series)}|RELEASE|FILE  take this kernel: of the lab
    ({", ".join(kinds.of(X86_64))}, too), below /boot, a vmlinuz, or a .deb (default:
    {X86_64.series[0]})
--module FILE  take this bulkmm.ko, or none (default: the lab's, or the installed one,
    or one built against installed headers)
--against KERNEL  compare with this kernel, named in the same ways; a module only if
    --module names one
--mitigations {{host,on,off}}  patch returns as this machine's kernel has them, or with
    mitigations on, or off (default: host)
--size SIZE  set the size of the device or of the clearing
--scenario NAME...  run this scenario only; may be given again
--fuzz SECONDS<0..540>  compare kept cases, then generated ones for this long;
    0: only kept
--seed N  generate the cases of this seed (default: 1)
--case LINE  measure this case only or, with --fuzz, compare it
--break-one-word  break one word of what the module wrote: the run must fail
"""
DEFAULTS = {
    "subject": "all",
    "kernel": X86_64.series[0],
    "mitigations": "host",
    "scenario": [],
    "seed": 1,
}
HISTORY_DOES = "time the own code of the newest kernel of each series"
HISTORY_ABOUT = """Run the own machine code of the newest kernel of each series that
Debian's archive offers (root), or of the kernels named, in processes on this CPU: what
memmap, clear, copy and vmap take, and the ratio to the oldest."""
HISTORY_EXAMPLE = "bulkmm bench history 6.12 7.3 --quick"
HISTORY = """
kernels:KERNEL...  run these instead, named as for "bench kernel": of the lab, below
    /boot, a vmlinuz, or a .deb
"""
