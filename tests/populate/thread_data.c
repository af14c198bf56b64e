// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* What the C library takes off the stack of each thread: more than ours is. */
extern __thread volatile char thread_data[300 << 10];
__thread volatile char thread_data[300 << 10];
