/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The resources of the server, as the controllers see them, and the caches that they share: one for
 * each resource that some controller needs, made once, running on every instance. Of namespaces and
 * workspaces the whole objects are kept, of all others metadata only. Immutable after new but for
 * what the caches hold. Thread: any.
 */
#include <holdfast/informer.h>
#include <holdfast/reconciler.h>

#define HFD_KINDS_MAX  32
#define HFD_KIND_INDEX "owner" /* of each cache: the uids of an object's owners */
#define HFD_HELD_INDEX                                                                             \
        "held" /* of namespaced kinds: the namespace of an object that has finalizers */

/* One row of the server's table; strings static. */
struct hfd_kind_row {
        struct hf_resource resource;
        const char *kind;
        bool namespaced;
};

struct hfd_kind {
        struct hfd_kind_row row;
        struct hf_informer *informer; /* owned by the kinds */
};

struct hfd_kinds {
        struct hfd_kind kinds[HFD_KINDS_MAX];
        size_t n;
};

/* rows is copied. Makes the caches, starts nothing. On failure nothing is left. */
int hfd_kinds_init(struct hfd_kinds *kinds, const struct hf_host *host, struct hf_client *client,
                   const struct hfd_kind_row *rows, size_t n);
int hfd_kinds_start(struct hfd_kinds *kinds);
void hfd_kinds_done(struct hfd_kinds *kinds);

/* By plural, in its group; NULL = not served. */
const struct hfd_kind *hfd_kinds_find(const struct hfd_kinds *kinds, const char *group,
                                      const char *plural);
/* By "v1" or "group/version" and kind, as an object or an owner reference names it; of the version
 * nothing is asked. */
const struct hfd_kind *hfd_kinds_named(const struct hfd_kinds *kinds, const char *api_version,
                                       const char *kind);
