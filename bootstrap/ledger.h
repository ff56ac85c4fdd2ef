/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The ledger: what was applied, by which version, and what became of it. A ConfigMap whose data is,
 * in format 1:
 *
 *      format              "1"
 *      steps               a line of JSON per record: step, phase, hash, applied, version, at,
 * outcome, superseded <phase>.completed   "<version> <time>": the newest version that completed the
 * phase, and when
 *
 * Whatever a later format changes, <phase>.completed stays: readiness asks for nothing else. Pure,
 * but for the text.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <holdfast/bootstrap.h>
#include <holdfast/fence.h>

#include "bootstrap/version.h"

struct hf__json;
struct hf__strbuf;

#define HF__HASH_DIGITS    32
#define HF__SUPERSEDED_MAX 8
#define HF__LEDGER_FORMAT  "1"

typedef char hf__hash[HF__HASH_DIGITS + 1]; /* "" = none */

enum hf__outcome {
        HF__OUTCOME_CREATED,
        HF__OUTCOME_UPDATED, /* an older version's, which nobody had edited, was replaced */
        HF__OUTCOME_FOUND,   /* somebody else had made it: left alone */
        HF__OUTCOME_KEPT,    /* somebody had edited it: left alone */
        HF__OUTCOME_DELETED, /* somebody had deleted it: left alone */
        _HF__OUTCOME_MAX
};
const char *hf__outcome_text(enum hf__outcome outcome);

struct hf__ledger_entry {
        char *step; /* owned */
        char phase[48];
        enum hf__outcome outcome;
        hf__hash hash;    /* of the manifest's content */
        hf__hash applied; /* of the object as the server made it of the last content that was
                             applied; "" = none ever was */
        char version[HF__VERSION_MAX + 1];
        char at[32];
        hf__hash superseded[HF__SUPERSEDED_MAX]; /* contents that were applied before, the oldest
                                                    first */
        unsigned n_superseded;
};

struct hf__ledger_completed {
        char phase[48];
        char version[HF__VERSION_MAX + 1]; /* "" = written by a format or a hand that is not known:
                                              complete, by whom is unknown */
        char at[32];
};

struct hf__ledger {
        bool newer_format;                /* of a later program: nothing but `completed` is known */
        struct hf__ledger_entry *entries; /* owned; in the order in which they were made */
        size_t n_entries;
        struct hf__ledger_completed completed[HF_BOOTSTRAP_PHASES_MAX];
        size_t n_completed;
};

/* Accepts a zeroed one. */
void hf__ledger_done(struct hf__ledger *ledger);
/*
 * phases: those whose completion is of interest. HF_E_INVALID: the object is not a ledger, with
 * words that say where; ret_ledger is then empty but for `completed`, and is to be hf__ledger_done
 * as ever.
 */
int hf__ledger_read(const struct hf__json *object, const char *const *phases, size_t n_phases,
                    struct hf__ledger *ret_ledger, struct hf_status *reterr_status);
/* Prints object with the ledger's records and completions; what else is in it survives. object NULL
 * = a new one. */
int hf__ledger_write(const struct hf__ledger *ledger, const struct hf__json *object, const char *ns,
                     const char *name, struct hf__strbuf *out);

/* NULL = there is none. Borrowed. */
const struct hf__ledger_entry *hf__ledger_find(const struct hf__ledger *ledger, const char *step);
const struct hf__ledger_completed *hf__ledger_find_completed(const struct hf__ledger *ledger,
                                                             const char *phase);
/* Adds a record, or replaces the step's: then the content that it names joins the superseded ones.
 * -ENOMEM. */
int hf__ledger_add(struct hf__ledger *ledger, const struct hf__ledger_entry *entry);
/* Marks the phase complete. HF_E_TOO_LARGE: too many phases. */
int hf__ledger_complete(struct hf__ledger *ledger, const char *phase, const char *version,
                        const char *at);
