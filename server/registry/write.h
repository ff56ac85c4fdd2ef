/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One write under way: what was sent (write_body.c), the loop (write.c), what is attempted
 * (write_update.c, write_delete.c, write_namespace.c) and how it is committed (write_commit.c).
 */
#include "server/cacher/cacher.h"
#include "server/storage/term_record.h"

struct hfd_write {
        struct hfd_api *api;
        struct hfd_request *request; /* the adapter's until done */
        struct hf__json *sent; /* owned; the object, or DeleteOptions; NULL = none, or it has become
                                  w->object */
        struct hf__json *object; /* owned; what is to be stored, prepared; gone when the transaction
                                    is under way */
        struct hfd_object *current; /* owned; NULL = there is none */
        bool fresh;                 /* current is what the store said, not the cache */
        bool generated, created, unchanged;
        bool fence_compared;
        struct hf__buf *epoch; /* owned; of a fenced call: the one known at the first attempt; NULL
                                  = none was */
        bool epoch_exists;
        bool same_term; /* a Lease whose holder and acquireTime stay as they are in w->current */
        unsigned tries, n_generated;
        char path[2 * HF_NAME_MAX + 2];
        char *key; /* owned; the path's in the store; NULL = the object has no name yet */
        struct hf__buf
                *stored; /* owned; what the transaction puts; NULL = it deletes, or only compares */
        struct hf__buf *last; /* owned; of an update that deletes: the state that is answered */
        /* The namespace an object is created in, as last seen: revision 0 and fresh = there is
         * none. */
        uint64_t ns_revision;
        bool ns_terminating, ns_fresh;
        struct hfd_fence_compares *fence; /* owned; NULL = the call is not fenced */
};

/* Makes w->key of w->path. 0, -ENOMEM or HF_E_TOO_LARGE. */
int hfd_write_make_key(struct hfd_write *w);

void hfd_write_attempt(struct hfd_write *w); /* with w->current as it is now */
void hfd_write_attempt_create(struct hfd_write *w);
void hfd_write_attempt_update(struct hfd_write *w);
void hfd_write_attempt_delete(struct hfd_write *w);
/* A refusal that rests on the cache's state: look at the store first, and attempt again. */
void hfd_write_refetch(struct hfd_write *w);
/* 409, once the store's state says it, too. */
void hfd_write_precondition_failed(struct hfd_write *w, const char *what, const char *wanted,
                                   const char *found);

/* The call's body, which is an object (of that type, say messages); the caller frees it also on
 * failure. False: answer is filled. */
bool hfd_body_parse(const struct hfd_request *request, const char *type, struct hf__json **ret_json,
                    struct hfd_response *response);
/* Parses the body into w->sent. False: answer is filled. */
bool hfd_write_parse(struct hfd_write *w, struct hfd_response *response);
/* Brings an object that a client wants stored into its normal form, and checks what needs no state.
 * False: answer is filled. */
bool hfd_write_accept(struct hfd_write *w, struct hf__json *object, struct hfd_response *response);
/* sent: DeleteOptions, NULL = no body. False: answer is filled. */
bool hfd_delete_options_read(struct hfd_options *options, const struct hf__json *sent,
                             struct hfd_response *response);

/* Whether finalizers keep a deleted object. */
bool hfd_write_held(const struct hfd_resource *resource, const struct hf__json *object);

/* The namespace lets w create in it. False: answered, or the store was asked and the attempt comes
 * again. */
bool hfd_write_namespace_open(struct hfd_write *w);
/* What the transaction of a creation compares of the namespace; false: nothing. key is its memory.
 */
bool hfd_write_namespace_compare(struct hfd_write *w, char key[HFD_KEY_MAX],
                                 struct hfd_compare *ret_compare);
/* Takes from what a failed transaction read how the namespace is now. False: out of memory. */
bool hfd_write_namespace_found(struct hfd_write *w, const struct hfd_kv *kvs, size_t n);

void hfd_write_commit(
        struct hfd_write *w); /* puts w->stored, or deletes, or only compares (w->unchanged) */
/* Takes current, which is what the store said. */
void hfd_write_adopt(struct hfd_write *w, struct hfd_object *current);
/*
 * The fields of object that resource's kind does not have, `unknown field "spec.x"` one per line,
 * to be freed; NULL = none. 0 or -ENOMEM.
 */
int hfd_unknown_fields(const struct hfd_resource *resource, struct hf__json *object,
                       char **ret_unknown);
/* Whether each field that is there is of the type its kind gives it. False: reason. */
bool hfd_fields_typed(const struct hfd_resource *resource, const struct hf__json *object,
                      char *reason, size_t max_reason);
/* The fields of a part ("" = the object itself) of a kind, separated by blanks; NULL: the part is
 * open. */
const char *hfd_known_fields(const char *kind, const char *part);
const char *hfd_write_name(const struct hfd_write *w);
bool hfd_term_is_same(const struct hf__json *a,
                      const struct hf__json *b); /* of two Leases: holder and acquireTime */
/* Each answers, and frees w. */
void hfd_write_finish(struct hfd_write *w, struct hfd_response *response);
void hfd_write_finish_no_memory(struct hfd_write *w);
void hfd_write_finish_store_error(struct hfd_write *w, int error, const struct hf_status *status);
