# SPDX-License-Identifier: GPL-2.0-only
#
# The front door:
#	make demo	set-up, native bench, one lab scenario, one table
#	make test	set-up and everything CI runs
#	make lab	every lab scenario on both kernels
#	make install	module and command for the running kernel

RELEASE ?= $(shell uname -r)
KDIR ?= /lib/modules/$(RELEASE)/build

.PHONY: build demo test check lab module install clean

build:
	@scripts/setup

demo: build
	@.venv/bin/bulkmm demo

test:
	@scripts/test

check:
	@scripts/setup tests
	@scripts/check

lab: build
	@scripts/lab

module:
	$(MAKE) -C $(KDIR) M=$(CURDIR)/module modules

install: module
	install -D -m 0644 module/bulkmm.ko \
		$(DESTDIR)/lib/modules/$(RELEASE)/updates/bulkmm.ko
	test -n "$(DESTDIR)" || depmod $(RELEASE)

# Caches of the lab (root, kernels) stay: "bulkmm lab clean" removes them.
clean:
	rm -rf build .venv *.egg-info
