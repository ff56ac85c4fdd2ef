/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The time zones of the system, for expressions: getHours('Europe/Berlin'). The first look-up of a
 * zone reads it from /usr/share/zoneinfo and keeps it, up to a limit (zones.c). That may happen on
 * any thread, because it is a local file of a few KiB. UTC and offsets such as "+02:00" need no
 * file; without these files, no other zone is known. If the file of a zone that is kept changes,
 * the process must be restarted to see it. Thread: any.
 */
#include <stdbool.h>

#include "cel/values/declarations.h"

const struct hf__cel_zones *hfd_zones(void);
/*
 * Whether there is a zone of this name. The name has no part that is "..", and does not begin with
 * a slash. On a machine without /usr/share/zoneinfo, or with some of its files only (Debian 13 has
 * the old names, such as US/Eastern, in a package of its own), that cannot be known: then the
 * result is true.
 */
bool hfd_zone_may_exist(const char *name);
