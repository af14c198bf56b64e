# SPDX-License-Identifier: GPL-2.0-only
"""Every kernel image for x86-64 in Debian's archive, and its headers.

The lab's root has a second apt configuration for them, with suites that the root
itself must not install from. Packages are fetched for one kernel at a time and
then deleted, to save disk space.
"""

import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bulkmm.control import requirements
from bulkmm.shell.child import ChildError
from bulkmm.shell.errors import BulkmmError
from bulkmm.shell.progress import Progress
from lab.machine import kernels
from lab.machine import root as roots
from lab.machine.arch import X86_64
from lab.machine.root import DebianRoot

SUITES = (
    *(*roots.SUITES, roots.OLDER, f"{roots.OLDER}-backports"),
    *("testing", "unstable", "experimental"),
)
FLAVOURS = ("cloud-", "", "rt-")
IMAGE = re.compile(
    r"linux-(?:image|binary)-(?:unsigned-)?"
    r"(?P<version>\d+\.\d+[\w.+~]*(?:-\d+)?)-"
    rf"(?P<flavour>cloud-|rt-|){X86_64.debian}(?:-unsigned)?"
)
MISSING = re.compile(r"^E: The repository '\S+ (\S+) ", re.MULTILINE)


@dataclass(frozen=True)
class Offer:
    """A kernel that the archive offers."""

    version: str
    flavour: str
    image: str  # package
    headers: tuple[str, ...]  # packages; empty if the archive no longer has them

    @property
    def release(self) -> str:
        """Return what "uname -r" would print."""
        return f"{self.version}-{self.flavour}{X86_64.debian}"

    @property
    def series(self) -> tuple[int, ...]:
        """Return (6, 12) for 6.12.107+deb13."""
        return requirements.parse_version(self.version)


class Archive:
    """Debian's archive, as the lab's root reaches it."""

    def __init__(self, root: DebianRoot) -> None:
        self.root = root
        self.home = root.var / "archive"

    def _apt(self) -> list[str]:
        home = self.root.inner(self.home)
        options = {
            "Dir::Etc::SourceList": f"{home}/sources.list",
            "Dir::Etc::SourceParts": "-",
            "Dir::State::Lists": f"{home}/lists",
            "Dir::Cache": f"{home}/cache",
            "Acquire::Languages": "none",
            "APT::Architectures": X86_64.debian,
        }
        return [f"-o{name}={value}" for name, value in options.items()]

    def update(self, progress: Progress) -> None:
        """Fetch the package lists; report missing suites."""
        for name in ("lists/partial", "cache/archives/partial"):
            (self.home / name).mkdir(parents=True, exist_ok=True)
        with progress.step("fetching the archive's lists of packages"):
            lines = roots.list_sources(SUITES, roots.SUITE, roots.OLDER)
            text = "".join(f"{line}\n" for line in lines)
            (self.home / "sources.list").write_text(text, encoding="ascii")
            try:
                self.root.run(["apt-get", "-q", *self._apt(), "update"], 600)
            except ChildError as error:
                missing = MISSING.findall(error.output)
                if not missing:
                    raise BulkmmError(f"the archive's lists: {error}") from error
                progress.note(f"not in the archive: {', '.join(missing)}")

    def offers(self) -> list[Offer]:
        """Return the kernels between those tested, the most relevant first.

        That is the newest of each series, those with headers before others.
        """
        output = self.root.run(["apt-cache", *self._apt(), "pkgnames", "linux-"])
        available = select_offers(set(output.split()))
        if not available:
            raise BulkmmError("the archive offers no kernel of the tested series")
        return available

    def fetched(self, names: tuple[str, ...]) -> AbstractContextManager[list[Path]]:
        """Fetch packages and delete them when the block exits."""
        return kernels.fetch_packages(self.root, names, self.home / "debs", self._apt())

    @contextmanager
    def installed(self, offer: Offer) -> Iterator[None]:
        """Unpack a kernel's headers in the root while the block runs."""
        new_places = [place for place in self._places(offer) if not place.exists()]
        try:
            with self.fetched(offer.headers) as debs:
                kernels.unpack_packages(self.root, debs)
            yield
        finally:
            for place in new_places:
                shutil.rmtree(place, ignore_errors=True)

    def _places(self, offer: Offer) -> list[Path]:
        places = kernels.header_places(offer.release, offer.version)
        places.append(f"lib/modules/{offer.release}")
        places.append(f"share/doc/linux-headers-{offer.release}")
        return [self.root.path / "usr" / place for place in places]


def select_offers(packages: set[str]) -> list[Offer]:
    """Return the kernels among the names of all packages (Archive.offers())."""
    table = requirements.read_table(X86_64.name)
    available: dict[tuple[str, str], Offer] = {}
    for name in sorted(packages):
        match = IMAGE.fullmatch(name)
        if not match or not table.encloses(match["version"]):
            continue
        version, flavour = match["version"], match["flavour"]
        release = f"{version}-{flavour}{X86_64.debian}"
        image = next(filter(packages.__contains__, _image_packages(release)))
        # 6.12-amd64 is a metapackage, but experimental's 7.3-amd64 is a split kernel
        if version.count(".") > 1 or image.startswith("linux-binary-"):
            headers = kernels.header_packages(packages, release, version)
            complete = headers if packages.issuperset(headers) else ()
            available[version, flavour] = Offer(version, flavour, image, complete)
    return _ranked(list(available.values()))


def _image_packages(release: str) -> tuple[str, ...]:
    """Return what may hold its image: for days, an update's is not signed yet."""
    return (
        f"linux-binary-{release}",
        f"linux-binary-unsigned-{release}",
        f"linux-image-{release}",  # of a kernel with one of the above: none
        f"linux-image-{release}-unsigned",
    )


def select_newest(offers: Iterable[Offer]) -> list[Offer]:
    """Return the first of each series and flavour: the newest with headers."""
    first: dict[tuple[tuple[int, ...], str], Offer] = {}
    for offer in offers:
        first.setdefault((offer.series, offer.flavour), offer)
    return [*first.values()]


def _ranked(available: list[Offer]) -> list[Offer]:
    """Return the newest of each series, then the rest, those with headers first."""
    newest = sorted(
        available, key=lambda offer: kernels.split_release(offer.release), reverse=True
    )
    newest.sort(key=lambda offer: not offer.headers)

    def rank(offer: Offer) -> tuple[bool, int, list[int], int]:
        versions = dict.fromkeys(x.version for x in newest if x.series == offer.series)
        place = [*versions].index(offer.version)
        series = [-number for number in offer.series]
        return (
            place > 0 and not offer.headers,
            place,
            series,
            FLAVOURS.index(offer.flavour),
        )

    return sorted(available, key=rank)
