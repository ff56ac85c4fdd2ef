/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Hides passwords in text that a message repeats. Pure. Thread: any. */
#include <stddef.h>

/*
 * Copies text into shown, which has room for max bytes (at least 1), and cuts it there. If text has
 * a ':' before its last '@', it may have a password ("user:password@host", after a scheme or not).
 * Then "***" replaces all that may be part of it: from the scheme, or from the beginning, to that
 * '@'. A list of URLs is one text; its URLs between the first scheme and the last '@' are hidden
 * with the password. Returns shown.
 */
const char *hf__redact(const char *text, char *shown, size_t max);
