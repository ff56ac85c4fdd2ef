/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The kinds of objects that the controllers use, each with one shared informer. The informers run
 * on every instance. The informers of namespaces, workspaces, clusterroles, apiservices and
 * certificatesigningrequests cache whole objects. All others cache metadata only, so a controller
 * must not write a cached object back.
 *
 * Thread: any, between the return of hfd_kinds_init and the call of hfd_kinds_done.
 */
#include <stdbool.h>

#include <holdfast/client.h>
#include <holdfast/informer.h>

#define HFD_SYSTEM_NAMESPACE "kube-system"

#define HFD_KINDS_MAX 64

/* Indexes of the informers. HFD_OWNER_INDEX exists for all kinds: its values are the uids of an
 * object's owners. HFD_FINALIZER_INDEX exists for namespaced kinds: its value is the namespace of
 * an object that may have finalizers. */
#define HFD_OWNER_INDEX     "owner"
#define HFD_FINALIZER_INDEX "finalizer"

/* One row of the server's table of resources; all strings are static. */
struct hfd_kind_row {
        struct hf_resource resource;
        const char *kind;
        bool namespaced;
};

struct hfd_kind {
        struct hfd_kind_row row;
        struct hf_informer *informer; /* owned by the hfd_kinds */
};

struct hfd_kinds {
        struct hfd_kind kinds[HFD_KINDS_MAX];
        size_t n;
};

/* Copies rows and creates the informers, which run on `thread`; starts nothing. host, client and
 * thread are borrowed. thread NULL: each informer has one of its own. On failure nothing is left to
 * free. HF_E_TOO_LARGE: more than HFD_KINDS_MAX rows. */
int hfd_kinds_init(struct hfd_kinds *kinds, const struct hf_host *host, struct hf_client *client,
                   struct hf_informer_thread *thread, const struct hfd_kind_row *rows, size_t n);
/* Starts the informers; does not wait for their lists. 0 or -errno. */
int hfd_kinds_start(struct hfd_kinds *kinds);

/* Stops and frees the informers. Accepts a zeroed struct, and zeroes *kinds. */
void hfd_kinds_done(struct hfd_kinds *kinds);

/* Finds a kind by group and plural; NULL = there is no such kind. Borrowed from kinds, as below. */
const struct hfd_kind *hfd_kinds_find(const struct hfd_kinds *kinds, const char *group,
                                      const char *plural);

/* Finds a kind by apiVersion ("v1", "group/version") and kind, the names in objects and owner
 * references. NULL = there is no such kind, or an argument is NULL. The version is ignored, because
 * each kind is served in one version only. */
const struct hfd_kind *hfd_kinds_find_by_name(const struct hfd_kinds *kinds,
                                              const char *api_version, const char *kind);
