/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes of this host that hold Leases of a set of electors.
 *
 * A process that has ended makes its pidfd readable, after the kernel has closed its files. That is
 * only the occasion for a test: another process may have got the pid. The lock file is the proof.
 *
 * Invariants:
 *  - a process's description (holder_lock.h) is used only for the record of the Lease that it
 *    belongs to: the one with this holder and acquire time;
 *  - while an elector refers to a holder that was found dead, the holder stays dead, whatever
 *    happens to its lock file later.
 */
#include "leader/holder_watch.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "leader/elector.h"
#include "leader/holder_lock.h"

struct holder {
        struct holder *next;
        unsigned n_refs;
        int pidfd; /* -1 = none, or it has been readable */
        bool is_dead, must_test;
        hf_nsec tested_at;
        char process[];
};

struct hf__holder_ref {
        struct holder *holder; /* NULL = the Lease does not describe its process, or memory ran out:
                                  then nothing is proven about this record */
        int64_t acquire_us;
        char identity[];
};

struct hf__holder_watch {
        struct hf__holder_lock *lock; /* owned */
        int epoll_fd;                 /* borrowed; -1 = none */
        struct holder *holders;       /* owned */
};

int hf__holder_watch_new(const char *path, struct hf__holder_watch **ret_watch,
                         struct hf_status *reterr_status) {
        struct hf__holder_watch *watch = calloc(1, sizeof *watch);

        if (!watch)
                return hf_fail(reterr_status, -ENOMEM, "electors: out of memory");
        watch->epoll_fd = -1;
        int r = hf__holder_lock_new(path, &watch->lock, reterr_status);
        if (r != 0) {
                free(watch);
                return r;
        }
        *ret_watch = watch;
        return 0;
}

struct hf__holder_watch *hf__holder_watch_free(struct hf__holder_watch *watch) {
        if (!watch)
                return NULL;
        assert(!watch->holders);
        hf__holder_lock_free(watch->lock);
        free(watch);
        return NULL;
}

void hf__holder_watch_set_epoll(struct hf__holder_watch *watch, int epoll_fd) {
        watch->epoll_fd = epoll_fd;
}

const char *hf__holder_watch_process(const struct hf__holder_watch *watch) {
        return watch ? hf__holder_lock_process(watch->lock) : NULL;
}

/* ---- holders ---- */

/* Removes the descriptor from the epoll set before closing it. While a forked child has the
 * descriptor too, closing alone would leave it in the set, and nothing could remove it any more. */
static void close_pidfd(const struct hf__holder_watch *watch, struct holder *holder) {
        if (holder->pidfd >= 0) {
                (void)epoll_ctl(watch->epoll_fd, EPOLL_CTL_DEL, holder->pidfd, NULL);
                (void)close(holder->pidfd);
        }
        holder->pidfd = -1;
}

/* If there is no pidfd, or it cannot be waited for, only the test once a second finds a death. */
static void open_pidfd(struct hf__holder_watch *watch, struct holder *holder) {
        struct epoll_event event = {.events = EPOLLIN};

        holder->pidfd = hf__holder_lock_pidfd(watch->lock, holder->process);
        event.data.fd = holder->pidfd;
        (void)epoll_ctl(watch->epoll_fd, EPOLL_CTL_ADD, holder->pidfd, &event);
}

/* Returns the holder with this description, with one more reference. NULL: out of memory. */
static struct holder *ref_holder(struct hf__holder_watch *watch, const char *process) {
        struct holder *holder = watch->holders;
        size_t n = strlen(process) + 1;

        while (holder && strcmp(holder->process, process) != 0)
                holder = holder->next;
        if (!holder && (holder = calloc(1, sizeof *holder + n))) {
                memcpy(holder->process, process, n);
                holder->must_test = true;
                holder->next = watch->holders;
                watch->holders = holder;
                open_pidfd(watch, holder);
        }
        if (holder)
                holder->n_refs++;
        return holder;
}

static void unref_holder(struct hf__holder_watch *watch, struct holder *holder) {
        assert(!holder || holder->n_refs > 0);
        if (!holder || --holder->n_refs > 0)
                return;
        for (struct holder **at = &watch->holders; *at; at = &(*at)->next)
                if (*at == holder) {
                        *at = holder->next;
                        break;
                }
        close_pidfd(watch, holder);
        free(holder);
}

static bool test_holder(struct hf__holder_watch *watch, struct holder *holder, hf_nsec now) {
        if (holder->is_dead || (!holder->must_test && now < holder->tested_at + HF_NSEC_PER_SEC))
                return holder->is_dead;
        holder->must_test = false;
        holder->tested_at = now;
        holder->is_dead = hf__holder_lock_is_dead(watch->lock, holder->process);
        return holder->is_dead;
}

bool hf__holder_watch_on_fd(struct hf__holder_watch *watch, int fd) {
        for (struct holder *holder = watch->holders; holder; holder = holder->next)
                if (holder->pidfd == fd) {
                        close_pidfd(watch, holder); /* it would stay readable */
                        holder->must_test = true;
                        return true;
                }
        return false;
}

/* ---- electors ---- */

void hf__holder_watch_drop(struct hf__holder_watch *watch, struct hf_elector *elector) {
        if (!elector->holder_ref)
                return;
        unref_holder(watch, elector->holder_ref->holder);
        free(elector->holder_ref);
        elector->holder_ref = NULL;
}

static bool is_about(const struct hf__holder_ref *ref, const struct hf__core_seen *record) {
        return ref && ref->acquire_us == record->acquire_us &&
               strcmp(ref->identity, record->holder) == 0;
}

/* Looks up the process that holds the Lease. The elector must not have a holder_ref. */
static void learn_holder(struct hf__holder_watch *watch, struct hf_elector *elector) {
        const struct hf__core_seen *record = &elector->core.observed;
        char process[HF__HOLDER_PROCESS_MAX];
        size_t n = strlen(record->holder) + 1;

        struct hf__holder_ref *ref = calloc(1, sizeof *ref + n);
        if (!ref)
                return;
        ref->acquire_us = record->acquire_us;
        memcpy(ref->identity, record->holder, n);
        if (elector->lock->ops->process &&
            elector->lock->ops->process(elector->lock, record->holder, record->acquire_us, process,
                                        sizeof process))
                ref->holder = ref_holder(watch, process);
        elector->holder_ref = ref;
}

bool hf__holder_watch_is_dead(struct hf__holder_watch *watch, struct hf_elector *elector,
                              hf_nsec now) {
        const struct hf__core *core = &elector->core;
        const struct hf__core_seen *record = &core->observed;
        bool is_foreign = core->state == HF_FOLLOWING && record->exists && record->holder[0] &&
                          strcmp(record->holder, elector->identity) != 0;

        if (!is_foreign || !is_about(elector->holder_ref, record))
                hf__holder_watch_drop(watch, elector);
        if (!is_foreign)
                return false;
        if (!elector->holder_ref)
                learn_holder(watch, elector);
        return elector->holder_ref && elector->holder_ref->holder &&
               test_holder(watch, elector->holder_ref->holder, now);
}
