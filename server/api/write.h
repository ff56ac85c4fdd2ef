/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* One write under way: what is attempted (write.c) and how it is committed (write_commit.c). */
#include "server/api/core.h"
#include "server/storage/term_record.h"

struct hfd_write {
        struct hfd_api *api;
        struct hfd_call *call;      /* the adapter's until done */
        struct hf__json *sent;      /* owned; the object, or DeleteOptions; NULL = none, or it has become w->object */
        struct hf__json *object;    /* owned; what is to be stored, prepared; gone when the transaction is under way */
        struct hfd_object *current; /* owned; NULL = there is none */
        bool fresh;                 /* current is what the store said, not the cache */
        bool generated, created, unchanged;
        bool fence_compared;
        bool same_term; /* a Lease whose holder and acquireTime stay as they are in w->current */
        unsigned tries, n_generated;
        char path[2 * HF_NAME_MAX + 2], key[HFD_KEY_MAX];
        struct hf__buf *stored; /* owned; what the transaction puts; NULL = it deletes, or only compares */
        struct hfd_fence_compares fence;
};

void hfd_write_attempt(struct hfd_write *w); /* with w->current as it is now */
void hfd_write_commit(struct hfd_write *w);  /* puts w->stored, or deletes, or only compares (w->unchanged) */
/* Takes current, which is what the store said. */
void hfd_write_adopt(struct hfd_write *w, struct hfd_object *current);
/*
 * The fields of object that resource's kind does not have, `unknown field "spec.x"` one per line, to be freed; NULL = none.
 * 0 or -ENOMEM.
 */
int hfd_unknown_fields(const struct hfd_resource *resource, struct hf__json *object, char **ret_unknown);
const char *hfd_write_name(const struct hfd_write *w);
bool hfd_term_is_same(const struct hf__json *a, const struct hf__json *b); /* of two Leases: holder and acquireTime */
/* Each answers, and frees w. */
void hfd_write_finish(struct hfd_write *w, struct hfd_answer *answer);
void hfd_write_finish_no_memory(struct hfd_write *w);
void hfd_write_finish_store_error(struct hfd_write *w, int error, const struct hf_status *status);
