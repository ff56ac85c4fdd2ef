/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* When an event was last of interest. Pure. */
#include <stdint.h>

struct hf__json;

/*
 * Seconds since 1970: the latest of creationTimestamp, lastTimestamp, eventTime,
 * series.lastObservedTime and the deprecated firstTimestamp. All but the first are the client's
 * words: one in the future is not believed. now when there is none.
 */
int64_t hfd_event_seen_at(const struct hf__json *event, int64_t now);
