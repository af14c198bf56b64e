// SPDX-License-Identifier: GPL-2.0-only
/*
 * Load another kernel and jump into it, without telling the firmware or the
 * processes here: bmmkexec KERNEL INITRAMFS WORDS
 */
#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <linux/reboot.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int kernel, initramfs;

	if (argc != 4) {
		fprintf(stderr, "usage: bmmkexec KERNEL INITRAMFS WORDS\n");
		return 2;
	}
	kernel = open(argv[1], O_RDONLY);
	initramfs = open(argv[2], O_RDONLY);
	if (kernel < 0 || initramfs < 0)
		err(1, "%s", kernel < 0 ? argv[1] : argv[2]);
	if (syscall(SYS_kexec_file_load, kernel, initramfs, strlen(argv[3]) + 1,
		    argv[3], 0UL))
		err(1, "load");
	sync();
	syscall(SYS_reboot, LINUX_REBOOT_MAGIC1, LINUX_REBOOT_MAGIC2,
		LINUX_REBOOT_CMD_KEXEC, NULL);
	err(1, "jump");
}
