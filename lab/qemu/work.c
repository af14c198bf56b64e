// SPDX-License-Identifier: GPL-2.0-only
/*
 * A QEMU plugin that counts the work of a guest's operations: instructions and
 * stores that its kernel retired on the CPU of the operation, or on all CPUs if
 * that ends on another than it began on. Operations are marked in the guest
 * (module/selftest/mark.h). One line per record, in order: instructions and
 * stores of each slot.
 *
 * Interrupts that come meanwhile are included. An x86 string instruction counts
 * once and its stores do not count: emulation makes one store per byte, which
 * no CPU does.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "mark.h"
#include "plugin.h"

struct row {
	uint64_t insns, stores;
};

EXPORT int qemu_plugin_version = PLUGIN_VERSION;
EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info *info,
			       int argc, char **argv);

static qemu_plugin_u64 insns, stores;
static struct row done[BMM_MARK_SLOTS];
static struct begin {
	unsigned int vcpu;
	struct row own, all;
} begun[BMM_MARK_SLOTS];
static bool recording;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static FILE *out;

/* @ahead: instructions from the mark on, which its block counted already */
static struct begin now(unsigned int vcpu, uint64_t ahead)
{
	struct begin here = {
		.vcpu = vcpu,
		.own = { qemu_plugin_u64_get(insns, vcpu) - ahead,
			 qemu_plugin_u64_get(stores, vcpu) },
		.all = { qemu_plugin_u64_sum(insns) - ahead,
			 qemu_plugin_u64_sum(stores) },
	};

	return here;
}

static void add(struct row *to, const struct begin *from,
		const struct begin *here)
{
	bool moved = from->vcpu != here->vcpu;
	const struct row *a = moved ? &from->all : &from->own;
	const struct row *b = moved ? &here->all : &here->own;

	to->insns += b->insns - a->insns;
	to->stores += b->stores - a->stores;
}

static void write_record(void)
{
	for (int i = 0; recording && i < BMM_MARK_SLOTS; i++)
		fprintf(out, "%lu %lu%c", done[i].insns, done[i].stores,
			i + 1 < BMM_MARK_SLOTS ? ' ' : '\n');
	fflush(out);
	memset(done, 0, sizeof(done));
}

/* what a mark's callback needs, in place of a pointer */
static void *packed(unsigned int mark, uint64_t ahead)
{
	return (void *)(ahead << 8 | mark);
}

static void marked(unsigned int vcpu, void *data)
{
	unsigned int mark = (uintptr_t)data & 0xff;
	struct begin here = now(vcpu, (uintptr_t)data >> 8);
	unsigned int slot = mark / 2 - 1;

	pthread_mutex_lock(&lock);
	if (mark == BMM_MARK_RECORD) {
		write_record();
		recording = true;
	} else if (mark == BMM_MARK_CLEAR) {
		memset(done, 0, sizeof(done));
	} else if (mark == BMM_MARK_BEGIN(slot)) {
		begun[slot] = here;
	} else {
		add(&done[slot], &begun[slot], &here);
	}
	pthread_mutex_unlock(&lock);
}

/* Return the mark that an instruction is, or -1. */
static int mark_of(const uint8_t *code, size_t size)
{
	uint32_t word, at = 0;

	for (int mark = 0; mark <= BMM_MARK_END(BMM_MARK_SLOTS - 1); mark++) {
		if (size == 7 && !memcmp(code, "\x0f\x1f\x80", 3)) {
			memcpy(&word, code + 3, sizeof(word));
			at = BMM_MARK_X86(mark);
		} else if (size == 4) {
			memcpy(&word, code, sizeof(word));
			at = 0xd2e0001f + BMM_MARK_ARM64(mark) * 32;
		} else {
			return -1;
		}
		if (word == at)
			return mark;
	}
	return -1;
}

/* REP, maybe a REX prefix, then MOVS or STOS; arm64's 4 bytes never match. */
static bool is_string(const uint8_t *code, size_t size)
{
	size_t i = 1;

	if (size < 2 || (code[0] & 0xfe) != 0xf2)
		return false;
	if ((code[1] & 0xf0) == 0x40)
		i++;
	return i + 1 == size &&
	       ((code[i] & 0xfe) == 0xa4 || (code[i] & 0xfe) == 0xaa);
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	size_t nr = qemu_plugin_tb_n_insns(tb);
	bool kernel = qemu_plugin_tb_vaddr(tb) >> 63;
	uint8_t code[16];

	(void)id;
	if (kernel)
		qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(
			tb, QEMU_PLUGIN_INLINE_ADD_U64, insns, nr);
	for (size_t i = 0; i < nr; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		size_t size = qemu_plugin_insn_data(insn, code, sizeof(code));
		int mark = mark_of(code, size);

		if (mark >= 0)
			qemu_plugin_register_vcpu_insn_exec_cb(
				insn, marked, QEMU_PLUGIN_CB_NO_REGS,
				packed(mark, kernel ? nr - i : 0));
		else if (kernel && !is_string(code, size))
			qemu_plugin_register_vcpu_mem_inline_per_vcpu(
				insn, QEMU_PLUGIN_MEM_W,
				QEMU_PLUGIN_INLINE_ADD_U64, stores, 1);
	}
}

static void ended(qemu_plugin_id_t id, void *data)
{
	(void)id;
	(void)data;
	write_record();
	fclose(out);
}

/* -plugin work.so,out=FILE */
int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info *info,
			int argc, char **argv)
{
	struct qemu_plugin_scoreboard *rows;

	(void)info;
	if (argc != 1 || strncmp(argv[0], "out=", 4))
		return -1;
	out = fopen(argv[0] + 4, "w");
	rows = qemu_plugin_scoreboard_new(sizeof(struct row));
	if (!out || !rows)
		return -1;
	insns = (qemu_plugin_u64){ rows, offsetof(struct row, insns) };
	stores = (qemu_plugin_u64){ rows, offsetof(struct row, stores) };
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	qemu_plugin_register_atexit_cb(id, ended, NULL);
	return 0;
}
