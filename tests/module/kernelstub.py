# SPDX-License-Identifier: GPL-2.0-only
"""What the module's assembly takes from the kernel's headers, for programs."""

from pathlib import Path

HEADERS = {
    "linux/linkage.h": """
#define SYM_CODE_START(name) .balign 8; .global name; name:
#define SYM_CODE_START_LOCAL(name) .balign 8; name:
#define SYM_CODE_START_NOALIGN(name) .global name; name:
#define SYM_CODE_END(name)
#define SYM_FUNC_START(name) SYM_CODE_START(name)
#define SYM_FUNC_END(name)
#define ENDBR endbr64
#define RET ret
""",
    "asm/asm.h": """
/* where an access may fail, and where to go on; the kernel has distances */
#define _ASM_EXTABLE_TYPE(from, to, type) \\
	.pushsection .rodata.extable, "a"; .quad from, to; .popsection
""",
    "linux/pgtable.h": """
#define PMD_SIZE 0x200000
#define CONT_PTE_SHIFT 16
""",
    "asm/unwind_hints.h": """
#define UNWIND_HINT_FUNC
#define ANNOTATE_NOENDBR
""",
}


def write_headers(place: Path) -> None:
    """Leave the headers in a directory that a compiler is told to look in."""
    for name, text in HEADERS.items():
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).write_text(text)
