/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The time zones of the system, for expressions: getHours('Europe/Berlin'). The first look-up of a
 * zone reads it from /usr/share/zoneinfo and keeps it, up to a limit (zones.c). That may happen on
 * any thread, because it is a local file of a few KiB. UTC and offsets such as "+02:00" need no
 * file; without these files, no other zone is known. If the files change, the process must be
 * restarted to see it. Thread: any.
 */
#include "cel/values/declarations.h"

const struct hf__cel_zones *hfd_zones(void);
