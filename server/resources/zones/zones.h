/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The time zones of the system, for expressions: getHours('Europe/Berlin'). A zone is read from
 * /usr/share/zoneinfo when it is asked for first, and kept: a local file of some KiB, so that this
 * may happen on any thread. A system without these files knows no zones. A change of the files
 * counts after a restart. Thread: any.
 */
#include "cel/declarations.h"

const struct hf__cel_zones *hfd_zones(void);
