/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A header of a response that has passed its check, so that it cannot break the framing. One that
 * many responses share is checked once. Pure. Thread: any. */
#include <stdbool.h>
#include <stddef.h>

struct hfd_checked_header {
        const char *name, *value; /* borrowed */
        size_t n_name, n_value;
};

/* name: in lower case, which is not checked: Content-Length with capitals would pass. False: the
 * header would break the framing. It contains a line break, for example, or is the Content-Length,
 * which the server itself writes. */
bool hfd_header_check(const char *name, const char *value, struct hfd_checked_header *ret_header);
