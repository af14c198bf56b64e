# SPDX-License-Identifier: GPL-2.0-only
"""Builds the Debian packages in a Debian root, checks them by lintian."""

import argparse
import shutil
import sys
from pathlib import Path

from bulkmm.shell.errors import BulkmmError
from bulkmm.shell.progress import Progress
from lab.machine import debs
from lab.machine.cached import need_root
from lab.paths import lock_cache


def main() -> int:
    """Write the packages into a directory."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    out = parser.parse_args().out
    progress = Progress()
    try:
        need_root()
        with lock_cache(progress) as cache:
            packages = debs.list_packages(debs.ensure_packages(cache, progress))
            out.mkdir(parents=True, exist_ok=True)
            for deb in packages:
                print(shutil.copy(deb, out))
    except (BulkmmError, OSError) as error:
        print(f"debs: {error}", file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
