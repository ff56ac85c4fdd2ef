/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The texts that the cores of a set of electors keep: the identities of other processes, as holders
 * and successors. A set may have thousands of electors that follow the same few processes, so equal
 * texts are kept once, and for as long as a core has a pointer to them.
 *
 * Around each step of a core:
 *
 *      hf__kept_texts_begin    takes the texts of the event, so that the core can copy them
 *      hf__core_step
 *      hf__kept_texts_end      counts the pointers that the core has now, and no longer those that
 *                              it had before
 *
 * From begin to end, the texts that the core had before the step still exist. Thread: the elector
 * loop's; init and done are for the owner, before the loop starts and after it has ended. Nothing
 * blocks.
 */
#include "client/key_index.h"
#include "leader/core.h"

struct hf__kept_texts {
        struct hf__core_texts_port port; /* first; for the cores */
        struct hf__key_index index;      /* owns its entries */
};

/* A step that is under way. */
struct hf__kept_texts_step {
        const char *before[HF__CORE_N_TEXTS];
        const char *taken[4]; /* an event has three texts in its record, and `successor` */
        unsigned n_taken;
};

void hf__kept_texts_init(struct hf__kept_texts *texts);
/* Frees all texts. No core may be used any more. */
void hf__kept_texts_done(struct hf__kept_texts *texts);
/* 0, or -ENOMEM: the event must not reach the core, and hf__kept_texts_end must not be called. */
int hf__kept_texts_begin(struct hf__kept_texts *texts, const struct hf__core *core,
                         const struct hf__core_event *event, struct hf__kept_texts_step *ret_step);
void hf__kept_texts_end(struct hf__kept_texts *texts, const struct hf__core *core,
                        struct hf__kept_texts_step *step);
