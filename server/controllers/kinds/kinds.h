/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The kinds of objects that the controllers use, each with one shared informer (kind_informer.h).
 * The informers run on every instance, leading or not.
 *
 * Thread: any, between the return of hfd_kinds_init and the call of hfd_kinds_done; the owner calls
 * hfd_kinds_start once.
 */
#include <holdfast/leader.h>

#include "server/controllers/kinds/kind_informer.h"

#define HFD_SYSTEM_NAMESPACE "kube-system"

#define HFD_KINDS_MAX 80 /* built-in kinds */

struct hfd_custom_kinds;

struct hfd_kinds {
        struct hfd_kind kinds[HFD_KINDS_MAX]; /* the built-in ones */
        size_t n;
        struct hfd_kind_set *built_in;   /* a reference; the first or (without custom) only set */
        struct hfd_custom_kinds *custom; /* owned; NULL = custom kinds are not followed */
};

struct hfd_kinds_config {
        struct hfd_kind_sources sources;
        const struct hfd_kind_row *rows; /* the built-in kinds; copied */
        size_t n_rows;
        /* Whether the kinds of definitions are followed too. It needs a row for definitions. */
        bool custom;
};

/* Creates the informers; starts nothing. On failure nothing is left to free. 0, -errno, or
 * HF_E_TOO_LARGE: more than HFD_KINDS_MAX rows. */
int hfd_kinds_init(struct hfd_kinds *kinds, const struct hfd_kinds_config *config);
/* Starts the informers; does not wait for their lists. 0 or -errno. */
int hfd_kinds_start(struct hfd_kinds *kinds);

/* Stops and frees the informers. No other thread may have a reference to a set any more. Accepts a
 * zeroed struct, and zeroes *kinds. */
void hfd_kinds_done(struct hfd_kinds *kinds);

/* Finds a built-in kind by group and plural; NULL = there is no such kind. Borrowed from kinds. */
const struct hfd_kind *hfd_kinds_find(const struct hfd_kinds *kinds, const char *group,
                                      const char *plural);

/* Returns a reference to the current set. */
struct hfd_kind_set *hfd_kinds_get(struct hfd_kinds *kinds);

/*
 * Whether the set has all kinds that may have objects: it is the current one, and has every kind
 * that is Established according to the informer of definitions. If a decision must not miss any
 * object that is older than a revision, wait first until that informer has reached the revision. A
 * kind that cannot be listed for a minute does not count any more, because a broken definition must
 * not block such decisions for ever. Never blocks.
 */
bool hfd_kinds_is_complete(struct hfd_kinds *kinds, const struct hfd_kind_set *set);

/*
 * Calls run with the current set. Each time run returns 0, calls it again with the set that is
 * current then, until the term drains. run is the reconcile loop of a controller. `until` is a
 * child of the term's drain, and also fires when the set is replaced; run must return soon
 * afterwards. The set is borrowed until run returns. Blocks. Returns 0, the first error of run, or
 * -errno.
 */
typedef int (*hfd_kinds_run_fn)(void *ctx, struct hf_term *term, struct hfd_kind_set *set,
                                struct hf_cancel *until);
int hfd_kinds_run(struct hfd_kinds *kinds, struct hf_term *term, hfd_kinds_run_fn run, void *ctx);
