/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The turn of a write among those that the same quotas count.
 *
 * Invariant: a write that waits for its turn belongs to the turn alone, until the write before it
 * ends and resumes it.
 */
#include "server/registry/write/quota_turn.h"

#include <assert.h>
#include <stdlib.h>

#include "server/registry/write/reply.h"

bool hfd_write_quota_turn_take(struct hfd_write *w, void (*on_turn)(struct hfd_write *w)) {
        struct hfd_write_quota *quota = w->quota;

        assert(quota && !w->awaiting);
        if (quota->turn_state != HFD_WRITE_QUOTA_NO_TURN)
                return true;
        quota->w = w;
        quota->on_turn = on_turn;
        quota->turn.ns = w->request->ns;
        quota->turn.deadline = w->request->deadline;
        /* Set both before the call: if the turn waits, another thread may use the write at once. */
        quota->turn_state = HFD_WRITE_QUOTA_HAS_TURN;
        w->on_pool = false;
        switch (hfd_quota_turns_take(&w->registry->turns, &quota->turn)) {
        case HFD_TURN_HELD: return true;
        case HFD_TURN_WAITS: return false;
        case HFD_TURN_PASSED: break;
        }
        quota->turn_state = HFD_WRITE_QUOTA_COMPETES;
        return true;
}

struct hfd_write *hfd_write_quota_turn_done(struct hfd_write *w) {
        struct hfd_write_quota *quota = w->quota;
        struct hfd_quota_turn *next = NULL;

        if (!quota)
                return NULL;
        if (quota->turn_state == HFD_WRITE_QUOTA_HAS_TURN)
                next = hfd_quota_turns_leave(&w->registry->turns, &quota->turn);
        hfd_quota_charges_clear(&quota->charges);
        free(quota);
        w->quota = NULL;
        return next ? ((struct hfd_write_quota *)next)->w : NULL;
}

/* The turn has come, perhaps too late: then nothing was written, and the client may try again. */
static void resume_write(struct hfd_write *w) {
        struct hfd_response response = {0};

        if (hfd_registry_now(w->registry) < w->request->deadline) {
                w->quota->on_turn(w);
                return;
        }
        hfd_response_conflict(&response, w->request->resource, hfd_write_name(w), NULL);
        hfd_write_reply(w, &response);
}

/*
 * A write that is resumed may end at once, which resumes the next. They are resumed in a loop and
 * not one within the other, because the stacks of threads are small.
 */
void hfd_write_quota_turn_resume(struct hfd_write *w) {
        static _Thread_local struct hfd_write *first;
        static _Thread_local bool running;

        if (!w)
                return;
        w->quota->waiting = first;
        first = w;
        if (running)
                return;
        running = true;
        while (first) {
                struct hfd_write *next = first;
                first = next->quota->waiting;
                resume_write(next);
        }
        running = false;
}
