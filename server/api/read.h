/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What get (read.c) and list (list.c) share: one read under way. */
#include "server/api/core.h"

struct hfd_read {
        struct hfd_reader reader; /* first: ready is given this */
        struct hfd_api *api;
        struct hfd_call *call;           /* the adapter's until done */
        char start[2 * HF_NAME_MAX + 4]; /* list: what comes after this path; "" = all */
        uint64_t at;                     /* list: exactly this revision; 0 = any that is new enough */
        bool too_large_if_late;          /* NotOlderThan: late is a 504, not a reason to ask the store */
};

/* NULL: out of memory, answered. */
struct hfd_read *hfd_read_new(struct hfd_api *api, struct hfd_call *call, void (*ready)(struct hfd_reader *reader));
/* Goes on with ready when the state that the options ask for is there. */
void hfd_read_start(struct hfd_read *read);
/* Each answers, and frees read. */
void hfd_read_finish(struct hfd_read *read, struct hfd_answer *answer);
void hfd_read_finish_store_error(struct hfd_read *read, int error, const struct hf_status *status);
void hfd_read_finish_too_large(struct hfd_read *read);
