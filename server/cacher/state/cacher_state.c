/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks for another filling of the cache, or for another watch of the store. The reflector
 * (sync/reflector.h) does the work. These functions are not among its own, because requests/, which
 * must not use sync/, calls them too.
 *
 * Invariant: after `relist` was set, the watch that is open is canceled. If none is open, the
 * reflector finds `relist` set at the latest when it has opened one, and cancels that. So between
 * the first sign of a replacement of the store and the filling that follows, no watch stays open,
 * and later signs have none to cancel (hfd_store_identity_replaced). The same holds for `reopen`,
 * which asks only for the end of the watch that is open. The event that leads to it may come from a
 * watch whose ID the reflector does not have yet.
 */
#include "server/cacher/state/cacher_state.h"

#include "base/thread.h"

void hfd_cacher_relist_locked(struct hfd_cacher *cacher, uint64_t *ret_cancel) {
        hf__mutex_assert_held(&cacher->mu);
        cacher->watch.relist = true;
        cacher->watch.retry_at = 0; /* if the reflector waits, it need not wait any longer */
        *ret_cancel = cacher->watch.id;
        pthread_cond_broadcast(&cacher->cond);
}

void hfd_cacher_cancel_watch(struct hfd_cacher *cacher, uint64_t id) {
        if (id)
                cacher->store->ops->watch_cancel(cacher->store, id);
}

void hfd_cacher_reopen_watch(struct hfd_cacher *cacher) {
        pthread_mutex_lock(&cacher->mu);
        cacher->watch.reopen = true;
        uint64_t id = cacher->watch.id;
        pthread_mutex_unlock(&cacher->mu);
        hfd_cacher_cancel_watch(cacher, id);
}
