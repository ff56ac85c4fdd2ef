/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Times in objects: the form in which they are stored, and the messages for a wrong time. Pure.
 * Thread: any. */
#include <stdbool.h>
#include <stddef.h>

#include "base/time_format.h"

/*
 * Writes the time `sent` to text, in the one format in which this server stores a Time, or a
 * MicroTime if micro is true. Some clients send a time back in another format ("+00:00" for "Z"),
 * and this must not change the object. A Time loses its fraction of a second. text must not be
 * `sent`. False: sent is not a time.
 * Then reason, of max_reason bytes, is the message of Go's time.Parse, except that the text of
 * `sent` is cut if it is long. A time before the year 1 or after the year 9999 becomes the first or
 * the last second of these years.
 */
bool hfd_time_text_normalize(const char *sent, bool micro, char text[HF__MICROTIME_MAX],
                             char *reason, size_t max_reason);
