/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One request to the registry: from HTTP (handlers/rest/rest.c), from inside the process
 * (loopback.c), or one step of another request (delete_collection.c, parts/part.c, or
 * handlers/reviews/token_request.c).
 *
 * The request is a member of a struct of the caller; done gets the address of the request, and so
 * finds that struct. The caller fills the request and passes it to hfd_registry_serve. The registry
 * calls done exactly once, on any thread, perhaps before hfd_registry_serve returns. done may free
 * the request. The response is borrowed until done returns. For a watch, the caller calls
 * hfd_registry_watch instead.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <holdfast/fence.h>

#include "server/admission/notes.h"
#include "server/auth/user.h"
#include "server/patch/patch.h"
#include "server/registry/base/options.h"
#include "server/resources/objects/object_key.h"
#include "server/resources/response.h"

enum hfd_verb {
        HFD_GET,
        HFD_LIST,
        HFD_WATCH,
        HFD_CREATE,
        HFD_UPDATE,
        HFD_PATCH,
        HFD_DELETE_OBJECT,
        HFD_DELETE_COLLECTION
};

struct hf__departure;
struct hfd_authorizer;

/* The form of the response: the objects, a Table, or PartialObjectMetadata. */
#define HFD_TABLE_VERSION_MAX 16
enum hfd_format { HFD_AS_JSON, HFD_AS_TABLE, HFD_AS_PARTIAL };

struct hfd_consistent_read;
struct hfd_list_body;

struct hfd_request {
        enum hfd_verb verb;
        const struct hfd_resource *resource; /* the creator of the request holds a reference */
        /* For a subresource whose bodies are of another kind than the object: the resource of the
         * object, while `resource` is that of the bodies (hfd_resource_of_part). Otherwise the same
         * as `resource`, or NULL. */
        const struct hfd_resource *part_of;
        char ns[HF_NAME_MAX + 1];   /* "" = all namespaces, or cluster scope */
        char name[HF_NAME_MAX + 1]; /* "" = the collection */
        /* For a delete: an object with another uid is treated as not found; "" = any uid. */
        char only_uid[64];
        enum hfd_subresource subresource;
        enum hfd_patch patch; /* for HFD_PATCH: the kind of patch in the body */
        struct hfd_options options;
        enum hfd_format format;
        char table_version[HFD_TABLE_VERSION_MAX]; /* of meta.k8s.io: "v1", "v1beta1" */
        /* The client gets protobuf. The registry makes only the pieces of a list and the initial
         * events of a watch in it, everything else in JSON, which the caller converts. */
        bool protobuf;
        const void *body; /* borrowed until done; NULL = none */
        size_t n_body;
        /* For a body in YAML, and for every apply: the text that the client has sent and from which
         * the body was made. A strict decoder reads it as YAML. Borrowed until done; NULL = the
         * decoder reads the body as JSON. */
        const char *yaml;
        size_t n_yaml;
        const char *agent; /* borrowed until done; the User-Agent; NULL = none */
        void *read_space;  /* borrowed until done; room for a struct hfd_read; NULL = none */
        /* Of a get with read_space: the members pass and thread of its struct hfd_consistent_read.
         */
        bool (*pass_reads)(struct hfd_consistent_read *reads);
        const void *thread;
        const struct hf_fence *fence; /* borrowed until done; NULL = not fenced */
        /* For writes and watches. requester NULL = the server itself, or a watch of an
         * administrator: all rights. A write of a client always has one. Both are borrowed until
         * done. */
        struct hfd_authorizer *authorizer;
        const struct hfd_requester *requester;
        bool in_process; /* it is from the loopback client */
        /* For a write: admission is not asked, because it was asked about the outer request that
         * this one is a step of, or because no webhook may hinder the write (admit.h). */
        bool skips_admission;
        /*
         * The delete is a step of a deletecollection, so admission sees no name, as in Kubernetes.
         */
        bool of_collection;
        /* A read takes objects in the version in which they are stored, if a webhook would have to
         * convert them: the server's own controllers must not wait for it, and read only metadata.
         */
        bool takes_any_version;
        /* A get without a resourceVersion reads the store, not the cache: an elector must not wait
         * for the watch that brings everybody's objects. */
        bool from_store;
        hf_nsec deadline;         /* boot time */
        hf_nsec longest_deadline; /* the deadline if webhooks are called; 0 = `deadline` */
        uint64_t owner;           /* for turns in the pool of threads; hfd_work_owner */
        /* Borrowed until done; true = the client has left; NULL = it never leaves. It is read
         * relaxed, because it only saves work: a thread that sees it late does one step more. */
        const atomic_bool *abandoned;
        /* For waits that must end when the client leaves. Borrowed until done; NULL = it never
         * leaves. */
        struct hf__departure *departure;
        bool on_pool; /* the caller is a thread of the pool of threads */
        /* A large list sets list_body instead of the response's body, and done owns it. */
        bool takes_list_body;
        struct hfd_list_body *list_body;
        /* For a write: the warnings and annotations of admission. The creator of the request frees
         * them. */
        struct hfd_admission_notes notes;
        void (*done)(struct hfd_request *request, const struct hfd_response *response);
};
