/* SPDX-License-Identifier: Apache-2.0 */
#include "server/controllers/event_core.h"

#include "base/json.h"
#include "base/time_format.h"

/* metav1.Time or MicroTime. -1 = none. */
static int64_t time_at(const struct hf__json *event, const char *path) {
        const char *text = hf__json_string(event, path);
        int64_t value;

        if (text && hf__time_parse(text, &value) == 0)
                return value;
        if (text && hf__microtime_parse(text, &value) == 0)
                return value / 1000000;
        return -1;
}

int64_t hfd_event_seen_at(const struct hf__json *event, int64_t now) {
        static const char *const said[] = {"lastTimestamp", "eventTime", "series.lastObservedTime",
                                           "firstTimestamp"};
        int64_t seen = time_at(event, "metadata.creationTimestamp");

        for (unsigned i = 0; i < sizeof said / sizeof *said; i++) {
                int64_t at = time_at(event, said[i]);
                if (at > seen && at <= now)
                        seen = at;
        }
        return seen < 0 ? now : seen;
}
