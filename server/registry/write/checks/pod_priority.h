/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The priority of a new pod: that of the PriorityClass that it names; if it names none, that of the
 * default class, or 0 without one. Thread: that of the write (write.h). Nothing blocks.
 */
#include "server/registry/write/write.h"

/* Other writes pass. False: the response was sent, or another attempt was started. */
bool hfd_write_prioritize(struct hfd_write *w);
