/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A time zone, for the times in CEL expressions (zones.h): read from the contents of a file in the
 * format of RFC 8536 (TZif). Pure. The caller frees it. Thread: any, as it does not change.
 *
 * No C library of Debian fits: glibc and libical keep one zone or one table for the whole process,
 * GLib ends the process when memory runs out, and ICU uses 30 MB of its own data instead of the
 * system's.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HFD_ZONE_BYTES_MAX 65536 /* of a file; those of Debian have at most 4 KiB */

struct hfd_zone;

/* data: the contents of a file, borrowed for the call. 0, -ENOMEM, or HF_E_INVALID: malformed. */
int hfd_zone_new(const void *data, size_t n, struct hfd_zone **ret_zone);
void hfd_zone_free(struct hfd_zone *zone); /* accepts NULL */
/* The offset from UTC in seconds, positive to the east. seconds: the time since 1970, in the years
 * 1 to 9999. */
int hfd_zone_offset(const struct hfd_zone *zone, int64_t seconds);
