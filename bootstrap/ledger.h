/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The ledger: what was applied, by which version, and with which outcome. It is a ConfigMap, whose
 * data in format 1 is:
 *
 *      format              "1"
 *      steps               a line of JSON per record: step, phase, hash, applied, version, at,
 *                          outcome, superseded
 *      <phase>.completed   "<version> <time>": the newest version that completed the phase
 *
 * A later format must keep `format` and <phase>.completed, which readiness depends on, and may
 * change the rest. Pure. A ledger belongs to one thread.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <holdfast/bootstrap.h>
#include <holdfast/fence.h>

#include "bootstrap/content.h"
#include "bootstrap/version.h"

#define HF__SUPERSEDED_MAX 8
/* Twice the steps of one program, because steps that only other versions have keep their records
 * while there is room. */
#define HF__LEDGER_RECORDS_MAX (2 * HF_BOOTSTRAP_STEPS_MAX)
#define HF__LEDGER_FORMAT      "1"

enum hf__outcome {
        HF__OUTCOME_CREATED,
        HF__OUTCOME_UPDATED, /* an earlier content that nobody had edited was replaced */
        HF__OUTCOME_FOUND,   /* it existed before, made by a user: left alone */
        HF__OUTCOME_KEPT,    /* a user had edited it: left alone */
        HF__OUTCOME_DELETED, /* a user had deleted it: left alone */
        _HF__OUTCOME_MAX
};
/* "created" and so on: part of the ledger's format and of a metric. Static. */
const char *hf__outcome_text(enum hf__outcome outcome);

struct hf__ledger_entry {
        char *step; /* owned; the id of a step (steps.h), which applies one manifest */
        char phase[48];
        enum hf__outcome outcome;
        hf__hash hash; /* hash of the manifest's content */
        /* hash of the content that the server stored when the manifest was last applied; "" =
         * never */
        hf__hash applied;
        char version[HF__VERSION_MAX + 1]; /* version of the program that wrote the record */
        char at[32];                       /* when it was written */
        /* hashes of the manifest's earlier recorded contents, oldest first */
        hf__hash superseded[HF__SUPERSEDED_MAX];
        unsigned n_superseded;
};

struct hf__ledger_completed {
        char phase[48];
        /* "" = the value cannot be read: an unknown version completed the phase */
        char version[HF__VERSION_MAX + 1];
        char at[32];
};

struct hf__ledger {
        /* the format is not HF__LEDGER_FORMAT, so a newer program wrote the ledger; only
         * `completed` was read */
        bool newer_format;
        struct hf__ledger_entry *entries; /* owned; in the order in which they were added */
        size_t n_entries, capacity;
        struct hf__ledger_completed completed[HF_BOOTSTRAP_PHASES_MAX];
        size_t n_completed;
};

/* Frees the contents. Accepts a zeroed struct. */
void hf__ledger_done(struct hf__ledger *ledger);
/*
 * Reads a ledger from its ConfigMap: all records, and the completions of these n_phases phases. 0,
 * -ENOMEM, HF_E_TOO_LARGE, or HF_E_INVALID: the object is not a ledger; the message names the
 * place. Always sets *ret_ledger: on failure it has `completed` and the records read so far. The
 * caller frees its contents with hf__ledger_done.
 */
int hf__ledger_read(const struct hf__json *object, const char *const *phases, size_t n_phases,
                    struct hf__ledger *ret_ledger, struct hf_status *reterr_status);
/* Appends to `out` the ConfigMap `object` with the ledger's records and completions. Everything
 * else in it stays, except unknown members of records. If object is NULL, appends a new ConfigMap
 * with this namespace and name. The ledger must not have a newer format, of which no records were
 * read. 0, -ENOMEM or HF_E_TOO_LARGE. */
int hf__ledger_write(const struct hf__ledger *ledger, const struct hf__json *object, const char *ns,
                     const char *name, struct hf__strbuf *out);

/* Both return NULL if the ledger has no such entry. The result is borrowed until the ledger
 * changes. */
const struct hf__ledger_entry *hf__ledger_find(const struct hf__ledger *ledger, const char *step);
const struct hf__ledger_completed *hf__ledger_find_completed(const struct hf__ledger *ledger,
                                                             const char *phase);
/* Adds a copy of a record. If the step has a record already, replaces it and adds the hash of the
 * replaced content to the superseded ones. The superseded hashes in `entry` are ignored. 0,
 * -ENOMEM, or HF_E_TOO_LARGE: there are HF__LEDGER_RECORDS_MAX records of other steps. */
int hf__ledger_add(struct hf__ledger *ledger, const struct hf__ledger_entry *entry);
/* Removes the record with this index. */
void hf__ledger_remove(struct hf__ledger *ledger, size_t index);
/* Marks the phase complete. 0, or HF_E_TOO_LARGE: there are too many phases. */
int hf__ledger_complete(struct hf__ledger *ledger, const char *phase, const char *version,
                        const char *at);
