/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The time at which an Event was last reported.
 *
 * Invariant: a time that a client set is ignored if it lies in the future. Otherwise an Event with
 * a wrong time would never expire. The creationTimestamp is always accepted: a server set it, and
 * the clock of that server may be slightly ahead of this machine's clock.
 */
#include "server/controllers/event_time.h"

#include "base/json.h"
#include "base/time_format.h"

/* Reads a metav1.Time (seconds) or a metav1.MicroTime; -1 = absent or malformed. */
static int64_t time_at(const struct hf__json *event, const char *path) {
        const char *text = hf__json_string(event, path);
        int64_t value;

        if (text && hf__time_parse(text, &value) == 0)
                return value;
        if (text && hf__microtime_parse(text, &value) == 0)
                return value / 1000000;
        return -1;
}

int64_t hfd_event_time_last(const struct hf__json *event, int64_t now) {
        static const char *const client_times[] = {"lastTimestamp", "eventTime",
                                                   "series.lastObservedTime", "firstTimestamp"};
        int64_t last = time_at(event, "metadata.creationTimestamp");

        for (unsigned i = 0; i < sizeof client_times / sizeof *client_times; i++) {
                int64_t at = time_at(event, client_times[i]);
                if (at > last && at <= now)
                        last = at;
        }
        return last < 0 ? now : last;
}
