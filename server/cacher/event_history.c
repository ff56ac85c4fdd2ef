/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ring of the most recent changes. Both the number of changes and the size of their objects are
 * limited, so that many changes of large objects do not use up the memory. Dropping the oldest
 * change raises `floor` to the revision of that change, which keeps the invariant of
 * event_history.h.
 */
#include "server/cacher/event_history.h"

#include <assert.h>

static void drop_oldest(struct hfd_event_history *history) {
        struct hfd_change *change = &history->ring[history->first];

        assert(history->n > 0);
        history->floor = change->object->revision;
        history->n_bytes -= change->object->bytes->n;
        hfd_object_unref(change->object);
        hfd_object_unref(change->before);
        *change = (struct hfd_change){0};
        history->first = (history->first + 1) % HFD_EVENT_HISTORY_EVENTS;
        history->n--;
}

void hfd_event_history_add(struct hfd_event_history *history, struct hfd_change change) {
        assert(change.object && change.type != HF_EVENT_BOOKMARK);
        /*
         * The size is checked before the new change is added, so one change may exceed the limit.
         */
        while (history->n > 0 && (history->n == HFD_EVENT_HISTORY_EVENTS ||
                                  history->n_bytes > HFD_EVENT_HISTORY_BYTES))
                drop_oldest(history);
        history->ring[(history->first + history->n++) % HFD_EVENT_HISTORY_EVENTS] = change;
        history->n_bytes += change.object->bytes->n;
}

void hfd_event_history_clear(struct hfd_event_history *history) {
        while (history->n > 0)
                drop_oldest(history);
        assert(history->n_bytes == 0);
}

const struct hfd_change *hfd_event_history_at(const struct hfd_event_history *history, size_t i) {
        assert(i < history->n);
        return &history->ring[(history->first + i) % HFD_EVENT_HISTORY_EVENTS];
}
