/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The time at which an Event was last reported. Pure.
 */
#include <stdint.h>

struct hf__json;

/*
 * Seconds since 1970: the latest of metadata.creationTimestamp, which the server set, and the times
 * that the Event's client set: lastTimestamp, eventTime, series.lastObservedTime and the deprecated
 * firstTimestamp. A client's time after now is ignored, so that no Event can keep itself alive. If
 * no time can be read: now.
 */
int64_t hfd_event_time_last(const struct hf__json *event, int64_t now);
