// SPDX-License-Identifier: GPL-2.0-only
/*
 * The kernel's command line. Its own copy is not exported, and what it parsed
 * is in static variables; but /proc/cmdline can be read like any other file.
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

/* Whether it is the word, with or without a value, as the kernel parses it. */
static bool cmdline_is(const char *text, const char *word)
{
	size_t len = strlen(word);

	return !strncmp(text, word, len) && (!text[len] || text[len] == '=');
}

/**
 * bmm_cmdline_has() - whether a word is on the kernel's command line
 * @word: a parameter, with or without a value
 *
 * Reads it in the calling task's view of /proc.
 *
 * Context: process, may sleep.
 * Return: 1 if it is there, 0 if not, or a negative errno if it is unknown.
 */
int bmm_cmdline_has(const char *word)
{
	char *text __free(kfree) = kmalloc(PAGE_SIZE, GFP_KERNEL);
	char *rest = text, *next;
	ssize_t got;

	if (!text)
		return -ENOMEM;
	got = cmdline_read(text, PAGE_SIZE - 1);
	if (got <= 0)
		return got ? got : -ENODATA;
	text[got] = '\0';
	while ((next = strsep(&rest, " \n")))
		if (cmdline_is(next, word))
			return 1;
	return got < PAGE_SIZE - 1 ? 0 : -E2BIG;
}
