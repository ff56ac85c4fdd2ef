/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Hides passwords in text that a message repeats. Pure. Thread: any. */
#include <stddef.h>

/*
 * Copies text into shown, which has room for max bytes (at least 1), and cuts it there. If text
 * looks as if it had a password ("user:password@host", after a scheme or not), "***" replaces all
 * that may be part of it: from the scheme, or from the beginning, to the last '@'. A list of URLs
 * is one text; its URLs between the first scheme and the last '@' are hidden with the password.
 * Returns shown.
 */
const char *hf__redact(const char *text, char *shown, size_t max);
