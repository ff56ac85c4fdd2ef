/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The priority of a new pod: that of its PriorityClass, or of the default class, or 0. Thread: that
 * of the write (write.h). Nothing blocks.
 */
#include "server/registry/write/write.h"

/* Other writes pass. False: the response was sent, or another attempt was started. */
bool hfd_write_prioritize(struct hfd_write *w);
