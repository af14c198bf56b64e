# SPDX-License-Identifier: GPL-2.0-only
"""Libraries that only some commands need, and how to install them.

The Python of Debian refuses pip (EXTERNALLY-MANAGED, PEP 668); that of a virtual
environment has no other way.
"""

import shlex
import sys
import sysconfig
from pathlib import Path

SCIPY = "1.15"  # as in pyproject.toml; Debian 12 has an older one
RESULTS = ("msgspec", "numpy", "scipy")
GROUPS = (RESULTS, ("rich",), ("jinja2",))
LEAST = {"scipy": SCIPY}
PAGE = "/usr/share/doc/bulkmm/install.md.gz"  # in the package
OLDER = f"Debian 12 lacks some: {PAGE}, Results on Debian 12"


def is_optional(name: str) -> bool:
    """Return whether a module is of such a library."""
    return any(name in group for group in GROUPS)


def explain_remedy(name: str) -> str:
    """Return how to install a library, and those that are used with it."""
    (group,) = (group for group in GROUPS if name in group)
    if _is_managed():
        remedy = f"apt install {' '.join(f'python3-{one}' for one in group)}"
        return f"{remedy} ({OLDER})" if group == RESULTS else remedy
    needed = [f"{one}>={LEAST[one]}" if one in LEAST else one for one in group]
    return shlex.join([sys.executable, "-m", "pip", "install", *needed])


def _is_managed() -> bool:
    """Return whether packages of the system are the only way."""
    in_venv = sys.prefix != sys.base_prefix
    mark = Path(sysconfig.get_path("stdlib")) / "EXTERNALLY-MANAGED"
    return not in_venv and mark.exists()
