/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The informer of a kind. Informers of namespaces, workspaces, clusterroles, apiservices,
 * certificatesigningrequests, validatingadmissionpolicies, flowschemas and
 * prioritylevelconfigurations cache whole objects, and that of customresourcedefinitions leaves out
 * the schemas. The informers of all other kinds cache metadata only. (Some custom kinds are cached
 * whole too: see is_kept_whole in the .c file.) A controller must not write a cached definition, or
 * a cached object of these other kinds, back to the server.
 *
 * If sources.metadata_client is set, the informers of the other kinds miss some changes: they get
 * no event of a change that leaves the metadata as they are, if the object has neither owners nor
 * finalizers and is not being deleted. So the cached resourceVersion of such an object may be
 * outdated. (needs_all_changes in the .c file lists the exceptions.)
 */
#include "server/controllers/kinds/kind_set.h"

/* Indexes of the informers. HFD_OWNER_INDEX exists for all kinds: its values are the uids of an
 * object's owners. HFD_FINALIZER_INDEX exists for namespaced kinds: its value is the namespace of
 * an object that may have finalizers. */
#define HFD_OWNER_INDEX     "owner"
#define HFD_FINALIZER_INDEX "finalizer"

/* serves: whether the server serves the kind of a definition already. It may begin to do so a
 * little later than the informer sees the definition. Never blocks. NULL = every kind is served.
 * Thread: any. */
struct hfd_kind_serving_functions {
        bool (*serves)(void *ctx, const struct hf_resource *resource);
        void *ctx;
};

/* The arguments of informers; all borrowed. */
struct hfd_kind_sources {
        const struct hf_host *host;
        struct hf_client *client;
        /* The client of most informers that keep metadata only. Its watches may leave out a change
         * that keeps the metadata, if the object has no owners and finalizers. NULL = client. */
        struct hf_client *metadata_client;
        struct hf_informer_thread *thread; /* NULL = each informer has one of its own */
        struct hfd_kind_serving_functions serving;
};

/* Whether the resource is customresourcedefinitions. Pure. */
bool hfd_kind_is_definitions(const struct hf_resource *resource);
/* Creates the informer with its indexes; does not start it. 0 or -errno. */
int hfd_kind_new_informer(const struct hfd_kind_sources *sources, const struct hfd_kind_row *row,
                          struct hf_informer **ret_informer);
