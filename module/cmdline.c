// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the kernel was told at boot. Its own copy is not exported, and what it
 * made of a word is a variable of a file; the command line can be read like
 * any other file.
 */
#include <linux/cleanup.h>
#include <linux/fs.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "cmdline.h"

static ssize_t cmdline_read(char *text, size_t size)
{
	struct file *file = filp_open("/proc/cmdline", O_RDONLY, 0);
	loff_t at = 0;
	ssize_t got;

	if (IS_ERR(file))
		return PTR_ERR(file);
	got = kernel_read(file, text, size, &at);
	filp_close(file, NULL);
	return got;
}

/**
 * bmm_cmdline_has() - a word on the kernel's command line
 * @word: a parameter without a value
 *
 * Context: process, may sleep.
 * Return: true if it is there; false if not, or if nobody can tell.
 */
bool bmm_cmdline_has(const char *word)
{
	char *text __free(kfree) = kmalloc(PAGE_SIZE, GFP_KERNEL);
	char *rest = text, *next;
	ssize_t got;

	if (!text)
		return false;
	got = cmdline_read(text, PAGE_SIZE - 1);
	if (got < 0)
		return false;
	text[got] = '\0';
	while ((next = strsep(&rest, " \n")))
		if (!strcmp(next, word))
			return true;
	return false;
}
