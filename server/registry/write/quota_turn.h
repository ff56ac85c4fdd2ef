/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The state that a write keeps about the quotas of its namespace: their versions, and its turn
 * among the writes of this instance (quota_turns.h). quota/quota.h uses it to decide. reply.c ends
 * the turn together with the write, so this file must not use quota/.
 *
 * Thread: that of the write (write.h). Nothing blocks.
 */
#include "server/registry/base/quota_charges.h"
#include "server/registry/base/quota_turns.h"
#include "server/registry/write/write.h"

enum hfd_write_quota_turn_state {
        HFD_WRITE_QUOTA_NO_TURN,  /* the write has not asked for a turn */
        HFD_WRITE_QUOTA_HAS_TURN, /* the write has its turn, or waits for it */
        HFD_WRITE_QUOTA_COMPETES, /* it goes on without a turn; its transaction may conflict */
};

struct hfd_write_quota {
        struct hfd_quota_turn turn; /* first member: hfd_write_quota_turn_done casts it back */
        struct hfd_write *w;
        enum hfd_write_quota_turn_state turn_state;
        struct hfd_quota_charges charges;
        /* Set by hfd_write_quota_turn_take: continues w once its turn has come. */
        void (*on_turn)(struct hfd_write *w);
        /* Set by hfd_write_quota_admit: commits w once its quotas accept it. */
        void (*commit)(struct hfd_write *w);
        struct hfd_write *waiting; /* the next write that this thread resumes */
};

/*
 * Takes a turn, unless w has one or competes without one. w->quota must be set. True: go on. False:
 * w waits, and another thread may be using it. When the turn has come, on_turn(w) is called, or, if
 * the deadline of the request has passed, w is refused.
 */
bool hfd_write_quota_turn_take(struct hfd_write *w, void (*on_turn)(struct hfd_write *w));
/*
 * Ends the turn of w, if it has one, and frees w->quota. Returns the write whose turn it is now,
 * for hfd_write_quota_turn_resume; NULL = none. The registry exists at least until that write is
 * resumed.
 */
struct hfd_write *hfd_write_quota_turn_done(struct hfd_write *w);
/* Continues w, whose turn has come, or responds 409 after its deadline. Never recurses: writes that
 * are resumed meanwhile follow in a loop. Accepts NULL. */
void hfd_write_quota_turn_resume(struct hfd_write *w);
