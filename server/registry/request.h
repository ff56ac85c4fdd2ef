/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One request as the registry sees it, whether it came by HTTP (handlers/rest.c) or from inside the
 * process (loopback.c).
 *
 * The caller allocates it, as the first member of a struct of its own, fills it, and hands it to
 * hfd_registry_serve. The registry answers by calling done, exactly once, on any thread, perhaps
 * before hfd_registry_serve returns. The caller frees the request in done; the response is borrowed
 * until done returns. A watch is begun by hfd_registry_watch instead.
 */
#include <stdbool.h>
#include <stdint.h>

#include <holdfast/fence.h>

#include "server/patch/patch.h"
#include "server/registry/options.h"
#include "server/resources/object_key.h"
#include "server/resources/response.h"

enum hfd_verb {
        HFD_GET,
        HFD_LIST,
        HFD_WATCH,
        HFD_CREATE,
        HFD_UPDATE,
        HFD_PATCH,
        HFD_DELETE_ONE,
        HFD_DELETE_MANY
};

/* The form of the response: the objects, a Table, or PartialObjectMetadata. */
enum hfd_format { HFD_AS_JSON, HFD_AS_TABLE, HFD_AS_PARTIAL };

struct hfd_request {
        enum hfd_verb verb;
        const struct hfd_resource *resource;
        char ns[HF_NAME_MAX + 1];   /* "" = all namespaces, or cluster scope */
        char name[HF_NAME_MAX + 1]; /* "" = the collection */
        /* Of a delete: an object with another uid counts as not found; "" = any uid. */
        char only_uid[64];
        enum hfd_subresource subresource;
        enum hfd_patch patch; /* of HFD_PATCH: the kind of patch in the body */
        struct hfd_options options;
        enum hfd_format format;
        char table_version[16]; /* of meta.k8s.io: "v1", "v1beta1" */
        const void *body;       /* the caller's until done; NULL = none */
        size_t n_body;
        const struct hf_fence *fence; /* the caller's until done; NULL = not fenced */
        bool in_process;              /* of holdfastd's own client */
        hf_nsec deadline;             /* boot time */
        void (*done)(struct hfd_request *request, const struct hfd_response *response);
};
