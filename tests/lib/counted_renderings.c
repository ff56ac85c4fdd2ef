/* SPDX-License-Identifier: Apache-2.0 */
/* See counted_renderings.h. The linker takes this copy of server/registry/list/rendering.c in place
 * of the product's. A chunk of a shared rendering begins with one iterator over the snapshot. */
#include "counted_renderings.h"

#include <stdatomic.h>

#include "server/cacher/history/object_tree.h"

static _Atomic uint64_t n_chunks;

static void count_iter_init(struct hfd_object_iter *iter, const struct hfd_object_tree *tree,
                            const struct hfd_scope *scope, const char *after) {
        atomic_fetch_add(&n_chunks, 1);
        hfd_object_iter_init(iter, tree, scope, after);
}

#define hfd_object_iter_init count_iter_init
#include "server/registry/list/rendering.c"

size_t counted_renderings_n(struct hfd_renderings *renderings) {
        pthread_mutex_lock(&renderings->mu);
        size_t n = renderings->n;
        pthread_mutex_unlock(&renderings->mu);
        return n;
}

uint64_t counted_renderings_chunks(void) { return atomic_load(&n_chunks); }
