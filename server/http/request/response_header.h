/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A header of a response that was checked once and is sent many times. Pure. Thread: any. */
#include <stdbool.h>
#include <stddef.h>

struct hfd_checked_header {
        const char *name, *value; /* borrowed */
        size_t n_name, n_value;
};

/* False: the header would break the framing: a line break in it, for example, or a length. */
bool hfd_header_check(const char *name, const char *value, struct hfd_checked_header *ret_header);
