/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A function stub_NAME replaces the kernel's NAME wherever the module calls it;
 * everything else that the module calls is the kernel's own code.
 */
#ifndef NATIVE_STUB_H
#define NATIVE_STUB_H

#define STUB(type, name, ...)          \
	type stub_##name(__VA_ARGS__); \
	type stub_##name(__VA_ARGS__)

#endif
