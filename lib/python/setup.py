# SPDX-License-Identifier: GPL-2.0-only OR MIT
"""Tags the wheel: any Python 3, but only the platform of the library in it."""

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel


class PlatformDistribution(Distribution):
    """A distribution with a shared library that is no extension module."""

    def has_ext_modules(self) -> bool:
        """Tell that the content depends on the platform."""
        return True


class PlatformWheel(bdist_wheel):
    """A wheel for any interpreter."""

    def get_tag(self) -> tuple[str, str, str]:
        """Return the tag, of no interpreter."""
        return "py3", "none", super().get_tag()[2]


setup(distclass=PlatformDistribution, cmdclass={"bdist_wheel": PlatformWheel})
