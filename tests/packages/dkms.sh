#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# In a Debian with DKMS: install packages of kernel headers beside that of the module, as
# VERSION, and leave in /out/packages each one's state in dpkg and whether the module was
# installed for it, in /out/codes what "dkms build" ends with for kernels without headers.
set -e

# RELEASE OPTION...: a package of headers that acts as Debian's, for a kernel with these
# options; the kernel's build makes an empty module
install_headers() {
	top=/tmp/$1 build=/tmp/$1/usr/lib/modules/$1/build
	mkdir -p "$build/include/config" "$top/usr/lib/modules/$1/kernel" "$top/DEBIAN"
	touch "$top/usr/lib/modules/$1/kernel/any.ko" # without any, a kernel counts as gone
	cat >"$build/Makefile" <<-\END
		modules: ; : | gcc -x c -c -o $(M)/bulkmm.ko -
	END
	release=$1
	shift
	printf 'CONFIG_%s\n' MODULES=y X86_64=y "$@" >"$build/$config"
	cat >"$top/DEBIAN/control" <<-END
		Package: linux-headers-$release
		Version: 1
		Architecture: all
		Maintainer: nobody <nobody@localhost>
		Description: kernel headers
	END
	cat >"$top/DEBIAN/postinst" <<-END
		#!/bin/sh -e
		run-parts --report --exit-on-error --arg=$release /etc/kernel/header_postinst.d
	END
	chmod +x "$top/DEBIAN/postinst"
	dpkg-deb -b "$top" "$top.deb"
	dpkg -i "$top.deb" || echo "$release: dpkg ends with $?"
	state=$(dpkg-query -W -f '${db:Status-Abbrev}' "linux-headers-$release")
	module=$(ls "/lib/modules/$release/updates/dkms" 2>/dev/null || :)
	echo "$release ${state% } ${module:-none}" >>/out/packages
}

config=.config
needed="DYNAMIC_FTRACE_WITH_DIRECT_CALLS=y HUGETLB_PAGE=y ZONE_DEVICE=y"
# shellcheck disable=SC2086 # these are words
{
	install_headers 7.40.0 $needed # before the package
	dpkg -i /bulkmm-dkms.deb
	install_headers 7.4.0 $needed # while DKMS has built nothing
	install_headers 6.1.0 $needed
	install_headers 7.5.0 $needed
	install_headers 5.10.0 $needed
	install_headers 6.12.1 ${needed% *}
	install_headers 6.12.2 $needed CC_IS_CLANG=y CFI_CLANG=y
	config=include/config/auto.conf # as packed by the kernel's own make bindeb-pkg
	install_headers 7.3.9 ${needed% *}
	install_headers 7.3.0 $needed
}

while read -r arch release; do
	code=0
	dkms build -q bulkmm/"$1" -k "$release" -a "$arch" || code=$?
	echo "$arch $release $code" >>/out/codes
done <<END
x86_64 6.11.9
x86_64 6.12.3+deb13-cloud-amd64
x86_64 6.99.1
x86_64 7.3.1
x86_64 7.4.1
x86_64 7.30.1
x86_64 5.12.1
aarch64 6.12.3+deb13-cloud-arm64
aarch64 7.0.1
aarch64 7.3.1
END
