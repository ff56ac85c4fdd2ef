/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Subresources whose bodies are of another kind than the object: .../scale, and .../binding and
 * .../eviction of pods (not .../token, which handlers/rest serves). A request to one of them
 * becomes requests to the object itself, which the registry serves as usual: a scale gets the
 * object and, if it is written, patches it; a binding gets the object and updates it; an eviction
 * deletes it. Thread: as for every request (request.h); nothing blocks. What takes long because the
 * body or the object is large is done by the pool of threads, as in write/defer.h.
 */
#include "base/strbuf.h"
#include "server/admission/admission.h"
#include "server/pool/work_pool.h"
#include "server/registry/base/registry_state.h"
#include "server/registry/base/request.h"

/* Serves a request to the object itself: hfd_registry_serve, which uses this folder. */
typedef void (*hfd_part_serve_fn)(struct hfd_registry *registry, struct hfd_request *request);
/* request->resource is the kind of the bodies, request->part_of the resource of the object. Calls
 * request->done once, perhaps before this returns. */
void hfd_part_serve(struct hfd_registry *registry, struct hfd_request *request,
                    hfd_part_serve_fn serve);

/* ---- private to the files of this folder ---- */

struct hf__json;

/* A part: a request to such a subresource, and the request to the object that it now makes. */
struct hfd_part {
        struct hfd_request inner; /* first member: its done casts it back to the part */
        struct hfd_registry *registry;
        hfd_part_serve_fn serve;               /* of inner */
        struct hfd_request *outer;             /* borrowed until its done is called */
        struct hf__json *body;                 /* owned; of the outer request; NULL = none */
        struct hfd_strict_mark strict_of_body; /* as in struct hfd_write */
        struct hf__buf *inner_body;            /* owned; NULL = none */
        unsigned n_conflicts; /* how often the object changed between get and write */
        /* The object of the last response. */
        struct hf__buf *got; /* owned; NULL = none */
        int got_code;
        /* For the pool of threads. */
        struct hfd_work_task task;
        void (*step)(struct hfd_part *part); /* what the task does */
        unsigned n_turns;  /* tasks given to the pool; 1 at first if the pool runs the request */
        bool on_pool;      /* the current thread belongs to the pool; false = perhaps not */
        bool is_committed; /* the inner write has succeeded, so the pool must not refuse the part */
        /* For the subresource scale. */
        struct hf__json *scale, *old_scale; /* owned; the new Scale, and the current one */
        char version[HF__U64_TEXT_MAX];     /* the resourceVersion of the current object */
        struct hfd_admission admission;
        struct hf__json **admitted_object; /* where admission puts its object back */
        void (*admitted)(struct hfd_part *part);
};

/*
 * Calls step(part): on a thread of the pool if n bytes are large work and the current thread does
 * not belong to the pool, otherwise directly. If the pool refuses the task, or if the request is
 * canceled before the task runs, responds instead, unless the part is committed: then step is
 * called all the same.
 */
void hfd_part_run(struct hfd_part *part, size_t n, void (*step)(struct hfd_part *part));
/* Keeps the object in the response of the inner request for step, which hfd_part_run calls. If
 * there is none, responds with the failure instead. */
void hfd_part_run_with(struct hfd_part *part, const struct hfd_response *response,
                       void (*step)(struct hfd_part *part));
/* Parses and drops the object that was kept. NULL: out of memory, and the response was sent. */
struct hf__json *hfd_part_parse_got(struct hfd_part *part);
/* Sends a request to the object. body: copied; NULL = none. done can cast inner to the part. If
 * memory runs out, responds instead. */
void hfd_part_send(struct hfd_part *part, enum hfd_verb verb, const struct hf__json *body,
                   void (*done)(struct hfd_request *inner, const struct hfd_response *response));
/* Responds, and frees the part. response is borrowed. */
void hfd_part_finish(struct hfd_part *part, const struct hfd_response *response);
void hfd_part_finish_no_memory(struct hfd_part *part);
/* Responds with json, which this frees. NULL: out of memory. */
void hfd_part_finish_json(struct hfd_part *part, int code, struct hf__json *json);
/*
 * Asks admission about *object, which is a member of part and which admission may change. old: the
 * version before; NULL = the request is a create. Then calls admitted, perhaps before this returns,
 * or responds. Admission is not asked again about the inner request that writes the object.
 */
void hfd_part_admit(struct hfd_part *part, struct hf__json **object, const struct hf__json *old,
                    void (*admitted)(struct hfd_part *part));
/* Whether a plug-in of admission wants the request, so that hfd_part_admit would ask it. */
bool hfd_part_wants_admission(const struct hfd_part *part, const struct hf__json *old);
/* Whether response says that the object has changed between the get and the patch or update, and
 * the part may begin again with a get. Counts how often. */
bool hfd_part_may_retry(struct hfd_part *part, const struct hfd_response *response);

void hfd_scale_serve(struct hfd_part *part);
void hfd_binding_serve(struct hfd_part *part);
void hfd_eviction_serve(struct hfd_part *part);
