/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* File descriptors that are closed at the end of a scope. Not in cleanup.h: most files include that
 * through json.h or buf.h, and do not need unistd.h. Thread: any. */
#include <unistd.h>

/* For HF__CLEANUP: a file descriptor; negative = there is none. Errors of the close are ignored. */
static inline void hf__close_cleanup(int *fd) {
        if (*fd >= 0)
                (void)close(*fd);
}
