/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Settings that the kernel keeps for this process. Only the program calls this, never the library.
 * Thread: call before other threads exist.
 */
#include <holdfast/host.h>

/*
 * Opens /dev/null for each of the descriptors 0 to 2 that is closed. Otherwise the next file or
 * socket would get such a number, and log lines would be written into it. Call before anything
 * opens a file. Writing to such a descriptor still fails, as it did when it was closed. 0 or
 * -errno.
 */
int hfd_process_limits_reserve_standard(void);

/*
 * Prevents core dumps, and keeps other processes of the same user from attaching a debugger and
 * from reading /proc/PID/mem, because the memory has private keys and tokens. Root may still
 * attach. Does nothing if $HOLDFASTD_ALLOW_DEBUG is set and is not empty. The process can still
 * read its own /proc/self.
 */
void hfd_process_limits_hide_memory(void);

/* Raises the soft limit of open files to the hard one: many connections need many descriptors, and
 * the soft limit of 1024 is for programs that use select(2). */
void hfd_process_limits_raise_files(const struct hf_log *log);
