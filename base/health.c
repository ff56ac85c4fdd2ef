/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The registry of health checks: a list in the order in which checks were added.
 *
 * Invariant: a read-write lock guards the list. hf_health_each holds the read lock while checks
 * run, and a removal takes the write lock. So when a removal returns, the removed check is not
 * running, and its owner may free the context.
 */
#include <holdfast/error.h>
#include <holdfast/health.h>

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

struct check {
        struct check *next;
        char *name; /* owned */
        unsigned endpoints;
        hf_health_fn fn;
        void *ctx;
};

struct hf_health {
        pthread_rwlock_t lock;
        struct check *checks; /* guarded by lock */
};

int hf_health_new(struct hf_health **ret_health) {
        struct hf_health *health = calloc(1, sizeof *health);

        if (!health)
                return -ENOMEM;
        int error = pthread_rwlock_init(&health->lock, NULL);
        if (error != 0) {
                free(health);
                return -error;
        }
        *ret_health = health;
        return 0;
}

static void check_free(struct check *check) {
        free(check->name);
        free(check);
}

HF__CLEANUP_DEFINE(check_cleanup, struct check *, check_free)

struct hf_health *hf_health_free(struct hf_health *health) {
        if (!health)
                return NULL;
        for (struct check *check = health->checks, *next; check; check = next) {
                next = check->next;
                check_free(check);
        }
        pthread_rwlock_destroy(&health->lock);
        free(health);
        return NULL;
}

/* Returns the link to the check with that name, or the link at the end of the list. The caller
 * holds the lock. */
static struct check **find_locked(struct hf_health *health, const char *name) {
        struct check **link = &health->checks;

        while (*link && strcmp((*link)->name, name) != 0)
                link = &(*link)->next;
        return link;
}

/* Allocates before it takes the lock, so that hf_health_each waits for the lock as briefly as
 * possible. */
int hf_health_add(struct hf_health *health, const char *name, unsigned endpoints, hf_health_fn fn,
                  void *ctx) {
        int r = 0;

        if (!health)
                return 0;
        if (!name || !*name || !fn || !endpoints ||
            (endpoints & ~(HF_HEALTHZ | HF_LIVEZ | HF_READYZ)))
                return -EINVAL;
        HF__CLEANUP(check_cleanup) struct check *check = calloc(1, sizeof *check);
        if (!check)
                return -ENOMEM;
        *check = (struct check){.name = strdup(name), .endpoints = endpoints, .fn = fn, .ctx = ctx};
        if (!check->name)
                return -ENOMEM;
        pthread_rwlock_wrlock(&health->lock);
        struct check **link = find_locked(health, name);
        if (*link)
                r = HF_E_EXISTS;
        else
                *link = HF__TAKE(check);
        pthread_rwlock_unlock(&health->lock);
        return r;
}

void hf_health_remove(struct hf_health *health, const char *name) {
        if (!health)
                return;
        assert(name);
        pthread_rwlock_wrlock(&health->lock);
        struct check **link = find_locked(health, name);
        struct check *check = *link;
        if (check)
                *link = check->next;
        pthread_rwlock_unlock(&health->lock);
        if (check)
                check_free(check);
}

size_t hf_health_each(struct hf_health *health, unsigned endpoint,
                      void (*each)(void *ctx, const char *name, bool healthy, const char *reason),
                      void *ctx) {
        size_t n_unhealthy = 0;

        if (!health)
                return 0;
        pthread_rwlock_rdlock(&health->lock);
        /* The read lock keeps the check's context alive while fn and each run. */
        for (struct check *check = health->checks; check; check = check->next) {
                char reason[600] = "";
                if (!(check->endpoints & endpoint))
                        continue;
                bool healthy = check->fn(check->ctx, reason, sizeof reason);
                if (!healthy)
                        n_unhealthy++;
                if (each)
                        each(ctx, check->name, healthy, healthy ? "" : reason);
        }
        pthread_rwlock_unlock(&health->lock);
        return n_unhealthy;
}
