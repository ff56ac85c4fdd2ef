/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The time at which an Event was last reported. Pure.
 */
#include <stdint.h>

struct hf__json;

/*
 * Returns the time at which the Event was last reported, in seconds since 1970, like now. This is
 * the latest of metadata.creationTimestamp, which the server set, and the times that the client
 * set: lastTimestamp, eventTime, series.lastObservedTime and the deprecated firstTimestamp. A
 * client's time after now is ignored. If no time can be parsed: now.
 */
int64_t hfd_event_time_last(const struct hf__json *event, int64_t now);
