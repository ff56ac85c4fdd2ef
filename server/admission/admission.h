/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Admission: plug-ins that may change or refuse a write before it is stored, as in kube-apiserver.
 *
 * A chain is a list of plug-ins, immutable once requests are served. The registry's write path
 * (registry/write/admit.h) asks it twice for each attempt of a write:
 *
 *      the new object is computed, has its defaults and its owners of fields
 *              -> mutate:   each plug-in in turn may change the object or refuse the request
 *      if one has changed it: decoded, pruned and defaulted again; then prepared and validated
 *              -> validate: each plug-in in turn may refuse
 *      the transaction
 *
 * After a conflict the whole attempt is made again, with both phases. A delete has no object to
 * change, but both phases see it. Objects that are not stored, such as reviews, and subresources of
 * another kind have the same two phases (registry/unstored.c, registry/parts/).
 *
 * A plug-in never blocks: it decides at once, or later on any thread (hfd_admission_next,
 * hfd_admission_refuse). Meanwhile the write holds no lock and no thread. A plug-in that waits for
 * something has a deadline of its own, which is not later than the admission's.
 *
 * If no plug-in wants a request, a phase costs one call of each `wants`, which must not allocate
 * and should not lock. Without any configuration, `wants` only reads an atomic.
 *
 * Thread: an admission belongs to one thread at a time, as its write (registry/write/write.h).
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include <holdfast/host.h>

#include "server/admission/forms.h"
#include "server/admission/notes.h"
#include "server/admission/object_forms.h"
#include "server/resources/resource.h"
#include "server/resources/response.h"

struct hf__departure;
struct hf__json;
struct hfd_admission;
struct hfd_authorizer;
struct hfd_cacher;
struct hfd_object;
struct hfd_requester;

enum hfd_admission_operation {
        HFD_ADMIT_CREATE = 1,
        HFD_ADMIT_UPDATE = 2,
        HFD_ADMIT_DELETE = 4,
        HFD_ADMIT_CONNECT = 8
};

/* The attributes of a request. Everything is borrowed while a phase runs, and does not change
 * meanwhile, except that the chain sets options and new_namespace when they are needed. */
struct hfd_admission_attributes {
        enum hfd_admission_operation operation;
        /* The row of the resource that the path names, in the version of the request. */
        const struct hfd_resource *resource;
        /* The kind of the object: the same row, or that of a subresource's bodies (Scale). */
        const struct hfd_resource *kind;
        const char *subresource; /* "" = none */
        /* The namespace; in a request for a Namespace, that Namespace's own name. "" = cluster
         * scope. */
        const char *ns;
        const char *name;           /* "" = unknown yet (generateName), or a collection */
        const struct hf__json *old; /* the stored object; NULL = a create */
        /* CreateOptions, UpdateOptions or DeleteOptions; NULL = not made yet (hfd_admission_options
         * makes them). */
        const struct hf__json *options;
        bool dry_run;
        const struct hfd_requester *user;  /* NULL = the server itself (loopback) */
        struct hfd_authorizer *authorizer; /* NULL = only fixed rules (auth/fixed_rules.h) */
        hf_nsec deadline;                  /* boot time; no plug-in may wait longer */
        struct hf__departure *departure;   /* of the client; NULL = it never leaves */
        /* The Namespace, if the cacher did not have it when it was looked up, and the store did. */
        struct hfd_object *new_namespace;
};

/* The group of the configuration of webhooks and policies. */
#define HFD_ADMISSION_GROUP       "admissionregistration.k8s.io"
#define HFD_ADMISSION_PLUGINS_MAX 12 /* HFD_C_PLUGINS_MAX, two of policies and two of webhooks */

/*
 * A plug-in. `wants` decides by operation, resource, kind and subresource alone. mutate and
 * validate are called only if `wants` returns true, and end with one call of hfd_admission_next or
 * hfd_admission_refuse, perhaps before they return. Thread of the three: any, also one that serves
 * connections; several at a time.
 */
struct hfd_admission_plugin {
        const char *name;
        void *ctx;
        bool (*wants)(void *ctx, const struct hfd_admission_attributes *of);
        void (*mutate)(void *ctx, struct hfd_admission *a);   /* NULL = it changes nothing */
        void (*validate)(void *ctx, struct hfd_admission *a); /* NULL = it only mutates */
        /*
         * The configuration in the cacher (group admissionregistration.k8s.io) may have changed:
         * builds another index and swaps it. Called on a thread of the feed (admission_feed.h) and
         * never at the same time as itself. 0, -ENOMEM (it is called again), or -EAGAIN: the cacher
         * is not filled yet. NULL = it has no configuration there.
         */
        int (*refresh)(void *ctx);
};

struct hfd_admission_chain {
        struct hfd_cacher *cacher; /* borrowed; NULL = namespaces are not looked up */
        struct hfd_admission_plugin plugins[HFD_ADMISSION_PLUGINS_MAX]; /* in the order of calls */
        size_t n_plugins;
        /* True once every plug-in has been refreshed after the cacher was filled. Before that,
         * plug-ins with `refresh` may not want a request that their configuration names. */
        atomic_bool ready;
};

/* The state of one admission that a plug-in keeps from round to round. */
struct hfd_admission_state {
        void *data;               /* NULL = nothing */
        void (*free)(void *data); /* called when the admission ends; with data */
};

/*
 * The admission of one attempt. The write owns it, fills the first part and lends it to the chain
 * for a phase.
 */
struct hfd_admission {
        struct hfd_admission_attributes of;
        /* The object that will be stored; NULL = a delete. In `mutate` the current plug-in may
         * change or replace it, and then calls hfd_admission_settle. In `validate` nobody may. */
        struct hf__json *object;
        struct hfd_admission_notes *notes; /* borrowed; for the response and the audit log */
        /* Brings a changed object into the form of its kind: decodes, prunes, sets defaults.
         * (Requests that store nothing do this later.) False: response is the error. */
        bool (*settle)(struct hfd_admission *a, struct hfd_response *response);
        /* Converts an object by the webhook of its kind (forms.h). NULL = there are none. */
        hfd_forms_convert *convert;
        hfd_objects_convert *convert_objects; /* the same for stored objects (object_forms.h) */
        /* Makes of.options; NULL: out of memory. The caller owns the result. */
        struct hf__json *(*make_options)(const struct hfd_admission *a);
        /* Ends the phase. refusal NULL = allowed; it is borrowed for the call. */
        void (*done)(struct hfd_admission *a, const struct hfd_response *refusal);
        void *ctx; /* of the functions above */

        /* Written by the chain and read by plug-ins. */
        bool validating;
        bool mutated;       /* a plug-in has changed the object in this admission */
        bool reinvoked;     /* this is the second round of mutate */
        bool must_reinvoke; /* hfd_admission_reinvoke was called; stays true in the second round */
        size_t at;          /* the current plug-in */
        const struct hfd_admission_chain *chain;
        struct hf__json *options; /* owned; of.options, if they were made here */
        /* Owned; NULL = nothing was converted by a webhook. */
        struct hfd_admission_forms *forms;
        struct hfd_object_forms *object_forms;
        /* Of hfd_admission_fetch_form. It and the callback of the conversion both exchange the
         * step; whichever of them comes second goes on with the admission. */
        struct {
                atomic_int step;
                void (*resume)(void *ctx);
                void *ctx;
        } fetch;
        bool asked_for_namespace;
        struct hfd_object *new_namespace; /* owned reference; as in `of` */
        struct hfd_admission_state states[HFD_ADMISSION_PLUGINS_MAX];
};

/* ---- for the registry ---- */

/* Adds a plug-in after those that are there. Call it before requests are served. */
void hfd_admission_chain_add(struct hfd_admission_chain *chain,
                             const struct hfd_admission_plugin *plugin);
/* Whether any plug-in wants the request. chain NULL = there are no plug-ins. */
bool hfd_admission_wanted(const struct hfd_admission_chain *chain,
                          const struct hfd_admission_attributes *of);
/*
 * Run a phase. mutate runs once at most for an admission, and before validate. a->done is called
 * once for each phase, perhaps before this returns; nobody else may touch `a` meanwhile. If a
 * plug-in has called hfd_admission_reinvoke, mutate has a second round.
 */
void hfd_admission_mutate(const struct hfd_admission_chain *chain, struct hfd_admission *a);
void hfd_admission_validate(const struct hfd_admission_chain *chain, struct hfd_admission *a);
/* Frees what the chain and the plug-ins have kept. The object stays the caller's. */
void hfd_admission_done(struct hfd_admission *a);

/* ---- for plug-ins ---- */

/* The plug-in allows the request. The caller must not touch `a` afterwards. */
void hfd_admission_next(struct hfd_admission *a);
/* The request ends with this response, which is consumed. The caller must not touch `a`
 * afterwards. */
void hfd_admission_refuse(struct hfd_admission *a, struct hfd_response *response);
/* A plug-in calls it after it has changed a->object in mutate. False: the object is no longer valid
 * for its kind. response is the error, and the plug-in must refuse the request with it. */
bool hfd_admission_settle(struct hfd_admission *a, struct hfd_response *response);
/*
 * Converts the object from the row `from` to the row `to` (a row is one version of a kind); the
 * caller owns the result. 0, -ENOMEM, or HF_E_INVALID: it cannot be converted (hfd_forms_failure).
 * -EAGAIN: the webhook of the kind must be asked. The plug-in then calls hfd_admission_fetch_form,
 * and calls this again after it.
 */
int hfd_admission_form(struct hfd_admission *a, const struct hfd_resource *from,
                       const struct hfd_resource *to, const struct hf__json *object,
                       struct hf__json **ret_object);
/*
 * Starts the conversion that is wanted. True: its result, or its failure, is known already. The
 * caller starts over, and resume is not called; a plug-in that needs many such conversions does so
 * in a loop and not in a recursion. False: resume is called, perhaps before this returns, and on
 * another thread; the caller must not touch `a` afterwards.
 */
bool hfd_admission_fetch_form(struct hfd_admission *a, void (*resume)(void *ctx), void *ctx);
/* Whether a conversion is wanted, of an object (forms.h) or of stored objects (object_forms.h).
 * Then the plug-in calls hfd_admission_fetch_form. */
bool hfd_admission_wants_form(const struct hfd_admission *a);
/* Asks for a second round of mutate, in which a->reinvoked is true. */
void hfd_admission_reinvoke(struct hfd_admission *a);
/* The state that the current plug-in keeps until the admission ends. Zero at first. */
struct hfd_admission_state *hfd_admission_state(struct hfd_admission *a);
/* The options of the request as an object of meta.k8s.io/v1; made at the first call, and borrowed
 * until the admission ends. NULL: out of memory, or make_options is NULL. */
const struct hf__json *hfd_admission_options(struct hfd_admission *a);
/* "CREATE", "UPDATE", "DELETE" or "CONNECT". */
const char *hfd_admission_operation_name(enum hfd_admission_operation operation);
/* Whether the object itself configures webhooks or policies. Webhooks are never asked about such
 * objects, so that no user can lock themselves out. Policies are asked about configurations of
 * webhooks, but not about policies (policy/policy_plugin.c). */
bool hfd_admission_is_configuration(const struct hfd_admission_attributes *of);
