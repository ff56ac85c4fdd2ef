/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Times in objects: the form in which they are stored, and Go's messages for a wrong one. Pure.
 * Thread: any. */
#include <stdbool.h>
#include <stddef.h>

#include "base/time_format.h"

/*
 * Writes a Time, or a MicroTime if micro is set, in the one format in which this server stores it:
 * some clients send a time back in another format ("+00:00" for "Z"), and this must not change the
 * object. A fraction of a second of a Time is dropped. text must not be `sent`. False: sent is no
 * time, and reason is the message of Go's time.Parse.
 */
bool hfd_time_text_normalize(const char *sent, bool micro, char text[HF__MICROTIME_MAX],
                             char *reason, size_t max_reason);
