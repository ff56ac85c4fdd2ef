/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies the keys of a source (copy_source.h) to an empty store, in batches.
 *
 * Invariants:
 *  - the first write creates the mark (P.holdfast/copying), the last one removes it, and each write
 *    in between compares it. So a target without the mark is complete, or has no key of the copy;
 *  - a write of unknown outcome is repeated. It requires that the keys that it puts do not exist,
 *    and that the mark that it deletes is unchanged. So it is applied at most once. If the
 *    repetition finds the keys as the write would leave them, an earlier try was applied.
 */
#include "server/storage/copy.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/storage/epoch.h"
#include "server/storage/keys.h"

#define BATCH       (HFD_TXN_MAX - 1) /* keys in one write, which also compares the mark */
#define BATCH_BYTES (512 << 10)       /* values in one write of several keys; etcd admits 1.5 MiB */

#define TARGET "the target" /* in messages */

struct run {
        const struct hfd_copy *copy;
        struct hfd_copy_result *result;
        struct hfd_patient patient;
        char mark_key[HFD_KEY_MAX], epoch_key[HFD_KEY_MAX];
        struct hf__buf *token;    /* the value of the mark and of the new epoch; owned */
        uint64_t mark_revision;   /* 0: not written yet */
        struct hf_status *status; /* of the first failure */
};

/* ---- writes that are repeated ---- */

/* Whether the keys are already as the transaction would leave them. result: the keys of all its
 * ops, as get_on_failure has found them. */
static bool was_applied(const struct hfd_txn *txn, const struct hfd_result *result) {
        size_t found = 0;

        for (size_t i = 0; i < txn->n_ops; i++) {
                const struct hfd_op *op = &txn->ops[i];
                const struct hfd_kv *kv = found < result->n_kvs ? &result->kvs[found] : NULL;
                bool exists = kv && strcmp(kv->key, op->key) == 0;

                if (exists != (op->kind == HFD_PUT))
                        return false;
                if (exists && (kv->value->n != op->value->n ||
                               memcmp(kv->value->data, op->value->data, op->value->n) != 0))
                        return false;
                found += exists;
        }
        return true;
}

/* Writes to the target. *ret_revision: that of the write. HF_E_CONFLICT: a compare failed, and this
 * copy has not written these ops in an earlier try. */
static int write_txn(struct run *run, const struct hfd_compare *compares, size_t n_compares,
                     const struct hfd_op *ops, size_t n_ops, uint64_t *ret_revision) {
        struct hfd_store *to = run->copy->to;
        const char *keys[HFD_TXN_MAX];
        struct hfd_txn txn = {.compares = compares,
                              .n_compares = n_compares,
                              .ops = ops,
                              .n_ops = n_ops,
                              .get_on_failure = keys,
                              .n_get_on_failure = n_ops,
                              .copied = true};
        struct hfd_result result = {0};
        bool unknown = false;
        hf_nsec give_up = 0;
        int r;

        for (size_t i = 0; i < n_ops; i++)
                keys[i] = ops[i].key;
        do {
                hfd_waiter_begin(&run->patient.waiter, &result);
                r = hfd_waiter_end(&run->patient.waiter, &result,
                                   to->ops->txn(to, &txn, hfd_patient_deadline(&run->patient),
                                                hfd_result_fill, &result));
                unknown = unknown || r == HF_E_TIMEOUT;
        } while (hfd_patient_may_repeat(&run->patient, r, &give_up));
        *ret_revision = result.revision;
        if (r == HF_E_CONFLICT && unknown && was_applied(&txn, &result)) {
                *ret_revision = result.n_kvs > 0 ? result.kvs[0].mod_revision : 0;
                r = 0;
        }
        if (r == HF_E_CONFLICT)
                (void)hf_fail(run->status, r, "another program writes to the target: %s",
                              result.n_kvs > 0 ? result.kvs[0].key : run->mark_key);
        else if (r != 0)
                (void)hfd_patient_fail(&run->patient, TARGET, r, &result);
        hfd_result_deinit(&result);
        return r;
}

/* ---- before the first write ---- */

/* Refuses a target that has any key P/... or P.holdfast/... apart from the mark of this copy. Keys
 * that a copy leaves out count too; keys outside the prefix P do not. */
static int check_target(struct run *run) {
        const char *const endings[] = {"/", ".holdfast/"};
        char prefix[HFD_KEY_MAX];
        struct hfd_result found = {0};
        int r = 0;

        for (size_t i = 0; i < sizeof endings / sizeof endings[0] && r == 0; i++) {
                const struct hfd_patient_range range = {.store = run->copy->to,
                                                        .name = TARGET,
                                                        .prefix = prefix,
                                                        .limit = 2,
                                                        .keys_only = true};

                (void)snprintf(prefix, sizeof prefix, "%s%s", run->copy->source->prefix,
                               endings[i]);
                r = hfd_patient_list(&run->patient, &range, &found);
                for (size_t k = 0; k < found.n_kvs && r == 0; k++)
                        if (run->mark_revision == 0 || strcmp(found.kvs[k].key, run->mark_key) != 0)
                                r = hf_fail(run->status, HF_E_EXISTS,
                                            "the target is not empty: it has the key %.200s",
                                            found.kvs[k].key);
        }
        hfd_result_deinit(&found);
        return r;
}

static int make_token(struct run *run) {
        char text[HFD_EPOCH_MAX];
        int r = hfd_epoch_make(text, run->status);

        if (r != 0)
                return r;
        run->token = hf__buf_copy(text, strlen(text));
        return run->token ? 0 : hf_fail(run->status, -ENOMEM, "out of memory");
}

/* ---- writing ---- */

static int write_mark(struct run *run) {
        struct hfd_compare absent = {.kind = HFD_MOD_EQUALS, .key = run->mark_key};
        struct hfd_op put = {.kind = HFD_PUT, .key = run->mark_key, .value = run->token};

        int r = write_txn(run, &absent, 1, &put, 1, &run->mark_revision);
        /* After a conflict the mark is that of another copy. */
        run->result->incomplete = r != HF_E_CONFLICT;
        return r;
}

/* Removes the mark from a target that this copy has not changed otherwise. */
static void withdraw_mark(struct run *run) {
        struct hf_status why = *run->status;
        struct hfd_compare compare = {.kind = HFD_MOD_EQUALS,
                                      .key = run->mark_key,
                                      .revision = run->mark_revision};
        struct hfd_op op = {.kind = HFD_DELETE, .key = run->mark_key};
        uint64_t revision;

        run->result->incomplete = write_txn(run, &compare, 1, &op, 1, &revision) != 0;
        *run->status = why;
}

/*
 * An instance may have started after the target was looked at: it has found no mark and begun to
 * write. So the target is looked at once more while the mark is there. An instance that has not
 * written yet stops when the mark reaches its watch.
 */
static int mark_target(struct run *run) {
        int r = write_mark(run);

        if (r != 0)
                return r;
        r = check_target(run);
        if (r == HF_E_EXISTS)
                withdraw_mark(run);
        return r;
}

static int remove_mark(struct run *run) {
        struct hfd_compare compares[] = {{.kind = HFD_MOD_EQUALS,
                                          .key = run->mark_key,
                                          .revision = run->mark_revision},
                                         {.kind = HFD_MOD_EQUALS, .key = run->epoch_key}};
        struct hfd_op ops[] = {{.kind = HFD_PUT, .key = run->epoch_key, .value = run->token},
                               {.kind = HFD_DELETE, .key = run->mark_key}};
        uint64_t revision;
        int r = write_txn(run, compares, 2, ops, 2, &revision);

        if (r == 0)
                run->result->incomplete = false;
        return r;
}

/* Creates n keys in one write, or in several if the target refuses it as too large. values[i] is
 * the result of a list of one key. */
static int write_values(struct run *run, const struct hfd_result *values, size_t n) {
        struct hfd_compare compares[HFD_TXN_MAX] = {
                {.kind = HFD_MOD_EQUALS, .key = run->mark_key, .revision = run->mark_revision}};
        struct hfd_op ops[BATCH] = {{0}};
        uint64_t revision;

        for (size_t i = 0; i < n; i++) {
                ops[i] = (struct hfd_op){.kind = HFD_PUT,
                                         .key = values[i].kvs[0].key,
                                         .value = values[i].kvs[0].value};
                compares[i + 1] = (struct hfd_compare){.kind = HFD_MOD_EQUALS, .key = ops[i].key};
        }
        int r = write_txn(run, compares, n + 1, ops, n, &revision);
        if (r != HF_E_TOO_LARGE)
                return r;
        if (n == 1)
                return hf_fail(run->status, r, "the target refuses the %zu bytes of %.200s",
                               ops[0].value->n, ops[0].key);
        /* The limit of this etcd is lower than the default. */
        r = write_values(run, values, n / 2);
        return r == 0 ? write_values(run, values + n / 2, n - n / 2) : r;
}

/* Reads the values of n entries, all at once. */
static int read_values(struct run *run, const struct hfd_copy_entry *entries, size_t n,
                       struct hfd_result *values) {
        struct hfd_patient *patient = &run->patient;
        struct hfd_patient_range ranges[BATCH];
        int started[BATCH], r = 0;

        for (size_t i = 0; i < n; i++) {
                ranges[i] = (struct hfd_patient_range){.store = run->copy->source->store,
                                                       .name = "the source",
                                                       .prefix = entries[i].key,
                                                       .start = entries[i].key,
                                                       .revision = run->copy->source->revision,
                                                       .limit = 1};
                started[i] = hfd_patient_start_list(patient, &ranges[i], &values[i]);
        }
        for (size_t i = 0; i < n; i++) {
                if (r != 0) { /* the others still have to be waited for */
                        (void)hfd_waiter_end(&patient->waiter, &values[i], started[i]);
                        continue;
                }
                r = hfd_patient_end_list(patient, &ranges[i], &values[i], started[i]);
                if (r == 0 && (values[i].n_kvs != 1 || !values[i].kvs[0].value ||
                               strcmp(values[i].kvs[0].key, entries[i].key) != 0))
                        r = hf_fail(run->status, -EIO, "the source has lost the key %.200s",
                                    entries[i].key);
        }
        return r;
}

/* Copies n entries, in as many writes as their sizes need. */
static int copy_batch(struct run *run, const struct hfd_copy_entry *entries, size_t n) {
        struct hfd_result values[BATCH] = {{0}};
        size_t first = 0, n_bytes = 0;
        int r = read_values(run, entries, n, values);

        for (size_t i = 0; i < n && r == 0; i++) {
                size_t size = values[i].kvs[0].value->n;

                if (i > first && n_bytes + size > BATCH_BYTES) {
                        r = write_values(run, &values[first], i - first);
                        first = i;
                        n_bytes = 0;
                }
                n_bytes += size;
        }
        if (r == 0)
                r = write_values(run, &values[first], n - first);
        for (size_t i = 0; i < n; i++)
                hfd_result_deinit(&values[i]);
        return r;
}

static int copy_entries(struct run *run) {
        const struct hfd_copy *copy = run->copy;
        const struct hfd_copy_source *source = copy->source;
        size_t percent = 0;
        int r = 0;

        if (copy->on_progress)
                copy->on_progress(copy->ctx, 0, source->n_entries);
        for (size_t at = 0; at < source->n_entries && r == 0;) {
                size_t left = source->n_entries - at, n = left < BATCH ? left : BATCH;

                r = copy_batch(run, &source->entries[at], n);
                at += n;
                if (r == 0 && copy->on_progress && at * 100 / source->n_entries > percent) {
                        percent = at * 100 / source->n_entries;
                        copy->on_progress(copy->ctx, at, source->n_entries);
                }
        }
        return r;
}

/* Checks that neither store was changed by others. A write raises the highest mod revision of the
 * source. A deletion lowers the number of keys, unless a new key was written. In the target only
 * the number of keys is checked. */
static int check_end(struct run *run) {
        const struct hfd_copy_source *source = run->copy->source;
        struct hfd_survey in_source = {.name = "the source"}, in_target = {.name = TARGET};
        assert(source->store && run->copy->to);
        int r = hfd_survey(&run->patient, source->store, source->prefix, &in_source);

        if (r == 0)
                r = hfd_survey(&run->patient, run->copy->to, source->prefix, &in_target);
        if (r != 0)
                return r;
        if (in_source.last_write > source->revision || in_source.n_keys != source->n_entries)
                return hf_fail(run->status, HF_E_CONFLICT,
                               "the source was written to during the copy: stop all instances "
                               "that use it");
        if (in_target.n_keys != source->n_entries)
                return hf_fail(run->status, HF_E_CONFLICT,
                               "another program writes to the target: it has %zu keys "
                               "instead of %zu",
                               in_target.n_keys, source->n_entries);
        return 0;
}

static int run_copy(struct run *run) {
        int r = hfd_key_own(run->mark_key, run->copy->source->prefix, "copying");

        if (r == 0)
                r = hfd_key_own(run->epoch_key, run->copy->source->prefix, "epoch");
        if (r != 0)
                return hf_fail(run->status, r, "the prefix is too long");
        r = check_target(run);
        if (r == 0)
                r = make_token(run);
        if (r == 0)
                r = mark_target(run);
        if (r == 0)
                r = copy_entries(run);
        if (r == 0)
                r = check_end(run);
        return r == 0 ? remove_mark(run) : r;
}

int hfd_copy_run(const struct hfd_copy *copy, struct hfd_copy_result *ret_result,
                 struct hf_status *reterr_status) {
        struct run run = {.copy = copy, .result = ret_result, .status = reterr_status};

        *ret_result = (struct hfd_copy_result){0};
        assert(copy->source && copy->to);
        int r = hfd_patient_init(&run.patient, copy->to->host, reterr_status);
        if (r != 0)
                return r;
        r = run_copy(&run);
        hf__buf_unref(run.token);
        hfd_patient_deinit(&run.patient);
        return r;
}
