/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The part of QEMU's plugin interface, version 3, that work.c uses, declared
 * here because no Debian package has its header.
 */
#ifndef BMM_QEMU_PLUGIN_H
#define BMM_QEMU_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#define PLUGIN_VERSION 3
#define EXPORT	       __attribute__((visibility("default")))

typedef uint64_t qemu_plugin_id_t;
struct qemu_info; /* describes QEMU; unused here */
struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_plugin_scoreboard; /* a row for each vCPU */

/* a number in each row of a scoreboard */
typedef struct {
	struct qemu_plugin_scoreboard *score;
	size_t offset;
} qemu_plugin_u64;

enum qemu_plugin_op {
	QEMU_PLUGIN_INLINE_ADD_U64
};
enum qemu_plugin_mem_rw {
	QEMU_PLUGIN_MEM_W = 2
};
enum qemu_plugin_cb_flags {
	QEMU_PLUGIN_CB_NO_REGS
};

struct qemu_plugin_scoreboard *qemu_plugin_scoreboard_new(size_t element_size);
uint64_t qemu_plugin_u64_get(qemu_plugin_u64 entry, unsigned int vcpu);
uint64_t qemu_plugin_u64_sum(qemu_plugin_u64 entry);

void qemu_plugin_register_vcpu_tb_trans_cb(
	qemu_plugin_id_t id,
	void (*cb)(qemu_plugin_id_t id, struct qemu_plugin_tb *tb));
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t id,
				    void (*cb)(qemu_plugin_id_t id, void *data),
				    void *data);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn,
					    void (*cb)(unsigned int vcpu,
						       void *data),
					    enum qemu_plugin_cb_flags flags,
					    void *data);
void qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(struct qemu_plugin_tb *tb,
						       enum qemu_plugin_op op,
						       qemu_plugin_u64 entry,
						       uint64_t imm);
void qemu_plugin_register_vcpu_mem_inline_per_vcpu(
	struct qemu_plugin_insn *insn, enum qemu_plugin_mem_rw rw,
	enum qemu_plugin_op op, qemu_plugin_u64 entry, uint64_t imm);

size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *
qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t i);
size_t qemu_plugin_insn_data(const struct qemu_plugin_insn *insn, void *dest,
			     size_t len);

#endif
