/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notices when the store's watch lags or hangs. A watch that hangs, because its member of the store
 * is frozen or cut off or because a connection stalls, looks like a watch of a store in which
 * nothing happens. The replies to other requests tell the two apart: they show revisions that the
 * watch has not delivered.
 *
 * A reply shows two kinds of revisions. Some certainly changed a watched key: the revision of our
 * own write, and the mod revisions of the keys that were read. If the cache stays below one of them
 * for REOPEN_MIN, and the watch delivers nothing meanwhile, the watch is opened anew, on another
 * member if there is one. The other kind is the store's revision at the time of the reply. Another
 * program may have written it, outside of our prefix, and then no event follows. If the cache stays
 * below such a revision for PROGRESS_MIN, a watched key is written; while the cache stands still,
 * each further write waits twice as long, up to PROGRESS_MAX. The event of a write moves the cache
 * past the revision; if the event does not come, the watch certainly lags. (etcd also has progress
 * requests. But before 3.4.25 and 3.5.8 the response to one may overtake events.) If there are no
 * replies either, the store's revision is read every PROBE_INTERVAL, so that an instance without
 * requests notices too.
 *
 * Invariants. A watch that delivers is left alone, even if it is far behind, because a new one
 * would begin at the same revision. The wait before reopening doubles each time, up to REOPEN_MAX,
 * until none was necessary for REOPEN_CALM. So if reopening does not help, the member does not
 * change too often.
 *
 * A mark keeps the highest revision that was known when it was set. Later replies do not move it,
 * because under a constant load every reply is slightly ahead of a healthy watch.
 */
#include "server/storage/watch_lag.h"

#include <assert.h>
#include <stddef.h>

#define PROBE_INTERVAL (5 * HF_NSEC_PER_SEC)
#define PROGRESS_MIN   (1 * HF_NSEC_PER_SEC)
#define PROGRESS_MAX   (16 * HF_NSEC_PER_SEC)
#define REOPEN_MIN     (1 * HF_NSEC_PER_SEC)
#define REOPEN_MAX     (16 * HF_NSEC_PER_SEC)
#define REOPEN_CALM    (60 * HF_NSEC_PER_SEC)

static hf_nsec later_time(hf_nsec a, hf_nsec b) { return a > b ? a : b; }

static hf_nsec lengthened_wait(hf_nsec wait, hf_nsec max) {
        return 2 * wait < max ? 2 * wait : max;
}

/* Removes a mark that the cache has reached, and sets one if a higher revision is known. */
static void update_mark(struct hfd_watch_lag_mark *mark, uint64_t cached, uint64_t highest,
                        hf_nsec now) {
        if (mark->revision > cached)
                return;
        *mark = (struct hfd_watch_lag_mark){0};
        if (highest > cached)
                *mark = (struct hfd_watch_lag_mark){highest, now};
}

static void update_marks(struct hfd_watch_lag *lag, hf_nsec now) {
        update_mark(&lag->behind, lag->cached, lag->written, now);
        update_mark(&lag->ahead, lag->cached, lag->reported, now);
}

void hfd_watch_lag_opened(struct hfd_watch_lag *lag, hf_nsec now) {
        lag->is_open = true;
        lag->heard_at = now;
}

void hfd_watch_lag_closed(struct hfd_watch_lag *lag) { lag->is_open = false; }

void hfd_watch_lag_reached(struct hfd_watch_lag *lag, uint64_t cached, hf_nsec now) {
        if (cached <= lag->cached)
                return;
        lag->cached = cached;
        lag->heard_at = now;
        lag->progress_wait = 0;
        update_marks(lag, now);
}

void hfd_watch_lag_replied(struct hfd_watch_lag *lag, uint64_t reported, uint64_t written,
                           hf_nsec now) {
        lag->replied_at = now;
        if (reported > lag->reported)
                lag->reported = reported;
        if (written > lag->written) {
                lag->written = written;
                lag->progress_wait = 0;
        }
        if (lag->cached > 0) /* otherwise the cache was not filled yet */
                update_marks(lag, now);
}

/* ---- the decision ---- */

/* The action that comes next, and when. */
static enum hfd_watch_lag_action next_action(const struct hfd_watch_lag *lag, hf_nsec *ret_due) {
        assert(lag->behind.revision == 0 || lag->behind.revision > lag->cached);
        assert(lag->ahead.revision == 0 || lag->ahead.revision > lag->cached);
        *ret_due = HF_NSEC_NEVER;
        if (!lag->is_open || lag->cached == 0)
                return HFD_WATCH_LAG_WAIT;
        if (lag->behind.revision > 0) {
                hf_nsec quiet_since = later_time(lag->behind.since, lag->heard_at);
                bool is_calm =
                        lag->reopen_wait == 0 || quiet_since - lag->reopened_at >= REOPEN_CALM;
                *ret_due = quiet_since + (is_calm ? REOPEN_MIN : lag->reopen_wait);
                return HFD_WATCH_LAG_REOPEN;
        }
        if (lag->ahead.revision > 0) {
                *ret_due = later_time(lag->ahead.since, lag->progress_at) +
                           later_time(lag->progress_wait, PROGRESS_MIN);
                return HFD_WATCH_LAG_WRITE_PROGRESS;
        }
        *ret_due = later_time(lag->heard_at, lag->replied_at) + PROBE_INTERVAL;
        return HFD_WATCH_LAG_PROBE;
}

hf_nsec hfd_watch_lag_due(const struct hfd_watch_lag *lag) {
        hf_nsec due;

        (void)next_action(lag, &due);
        return due;
}

static void count_reopening(struct hfd_watch_lag *lag, hf_nsec now) {
        bool is_calm = lag->reopen_wait == 0 || now - lag->reopened_at >= REOPEN_CALM;

        lag->reopen_wait = is_calm ? 2 * REOPEN_MIN : lengthened_wait(lag->reopen_wait, REOPEN_MAX);
        lag->reopened_at = lag->heard_at = now;
}

enum hfd_watch_lag_action hfd_watch_lag_decide(struct hfd_watch_lag *lag, hf_nsec now) {
        hf_nsec due;
        enum hfd_watch_lag_action action = next_action(lag, &due);

        if (now < due)
                return HFD_WATCH_LAG_WAIT;
        if (action == HFD_WATCH_LAG_REOPEN) {
                count_reopening(lag, now);
        } else if (action == HFD_WATCH_LAG_WRITE_PROGRESS) {
                lag->progress_at = now;
                /* The next one waits longer, because this one may fail. */
                lag->progress_wait =
                        lengthened_wait(later_time(lag->progress_wait, PROGRESS_MIN), PROGRESS_MAX);
        } else {
                lag->replied_at = now;
        }
        return action;
}

/* ---- how far ---- */

uint64_t hfd_watch_lag_revisions(const struct hfd_watch_lag *lag) {
        return lag->behind.revision > 0 ? lag->written - lag->cached : 0;
}

hf_nsec hfd_watch_lag_time(const struct hfd_watch_lag *lag, hf_nsec now) {
        return lag->behind.revision > 0 ? now - lag->behind.since : 0;
}
