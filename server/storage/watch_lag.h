/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Decides whether the store's watch lags behind the store, and what to do about it. The head of
 * watch_lag.c describes the model. Pure: the caller passes the time and carries out the actions.
 *
 * Times are boot times. Thread: one at a time; the cacher's lock guards its instance.
 */
#include <stdbool.h>
#include <stdint.h>

#include <holdfast/clock.h>

/* A revision that the cache has not reached, and since when that is known. */
struct hfd_watch_lag_mark {
        uint64_t revision; /* 0 = none */
        hf_nsec since;
};

/* All zero is the initial state. After a replacement of the store the owner zeroes it again. */
struct hfd_watch_lag {
        uint64_t cached;                  /* the cache's revision */
        uint64_t written;                 /* the highest that certainly changed a watched key */
        uint64_t reported;                /* the highest in any reply */
        struct hfd_watch_lag_mark behind; /* set from `written` */
        struct hfd_watch_lag_mark ahead;  /* set from `reported` */
        bool is_open;                     /* there is a watch */
        hf_nsec heard_at;   /* when a watch was last opened, a REOPEN was last due, or the cache
                               last advanced */
        hf_nsec replied_at; /* the last reply or probe */
        hf_nsec progress_at,
                progress_wait;            /* the last WRITE_PROGRESS; the time until the next one */
        hf_nsec reopened_at, reopen_wait; /* the last REOPEN; the wait before the next one */
};

enum hfd_watch_lag_action {
        HFD_WATCH_LAG_WAIT,
        HFD_WATCH_LAG_PROBE,          /* read the store's revision */
        HFD_WATCH_LAG_WRITE_PROGRESS, /* write a watched key, so that the watch must deliver
                                         something */
        HFD_WATCH_LAG_REOPEN,         /* end the watch and open it anew, on another member of the
                                         store if there is one */
};

/* A watch was opened; it delivers what follows the cache's revision. */
void hfd_watch_lag_opened(struct hfd_watch_lag *lag, hf_nsec now);
void hfd_watch_lag_closed(struct hfd_watch_lag *lag);
/* The cache has reached a revision, by the watch or by a list. */
void hfd_watch_lag_reached(struct hfd_watch_lag *lag, uint64_t cached, hf_nsec now);
/*
 * The store has replied. reported: its revision in the reply. written: the highest revision in the
 * reply at which a watched key was written; 0 = none.
 */
void hfd_watch_lag_replied(struct hfd_watch_lag *lag, uint64_t reported, uint64_t written,
                           hf_nsec now);
/*
 * Returns the action that is due. The caller carries it out: the state already counts it as done.
 */
enum hfd_watch_lag_action hfd_watch_lag_decide(struct hfd_watch_lag *lag, hf_nsec now);
/* The time from which hfd_watch_lag_decide returns an action other than WAIT, if the state does not
 * change before then. HF_NSEC_NEVER = only a change of the state makes an action due. */
hf_nsec hfd_watch_lag_due(const struct hfd_watch_lag *lag);

/* How many revisions the cache is certainly behind, and for how long that is known. */
uint64_t hfd_watch_lag_revisions(const struct hfd_watch_lag *lag);
hf_nsec hfd_watch_lag_time(const struct hfd_watch_lag *lag, hf_nsec now);
