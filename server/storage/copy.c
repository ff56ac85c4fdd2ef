/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies a store: finds all keys, sorts them by their revisions, and writes them in batches.
 *
 * Invariants:
 *  - the first write creates the mark (P.holdfast/copying), the last one removes it, and each write
 *    in between compares it. So a target without the mark is complete, or was never written to;
 *  - a write of unknown outcome is repeated. It requires that its keys do not exist, so it is
 *    applied at most once. If the repetition finds these keys with its own values, the first try
 *    was applied.
 */
#include "server/storage/copy.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/storage/blocking.h"
#include "server/storage/epoch.h"
#include "server/storage/keys.h"

#define PAGE        1000              /* keys in one list */
#define BATCH       (HFD_TXN_MAX - 1) /* keys in one write, which also compares the mark */
#define BATCH_BYTES (512 << 10)       /* values in one write of several keys; etcd admits 1.5 MiB */
#define TIMEOUT     (10 * HF_NSEC_PER_SEC) /* for one operation */
#define PATIENCE    (20 * HF_NSEC_PER_SEC) /* with a store that does not work */
#define RETRY_PAUSE (200 * HF_NSEC_PER_MSEC)

struct entry {
        char *key; /* owned */
        uint64_t mod_revision;
};

struct run {
        const struct hfd_copy *copy;
        struct hfd_copy_result *result;
        struct hfd_waiter waiter;
        char mark_key[HFD_KEY_MAX], epoch_key[HFD_KEY_MAX];
        struct hf__buf *token;  /* the value of the mark and of the new epoch; owned */
        uint64_t mark_revision; /* 0: not written yet */
        struct entry *entries;  /* owned */
        size_t n_entries, space;
        struct hf_status *status; /* of the first failure */
};

/* ---- operations that are repeated ---- */

static hf_nsec now(const struct run *run) { return hf_now(run->waiter.clock); }

static const char *side(const struct run *run, const struct hfd_store *store) {
        return store == run->copy->from ? "the source" : "the target";
}

static int fail_op(struct run *run, const struct hfd_store *store, int error,
                   const struct hfd_result *result) {
        return hf_fail(run->status, error, "%s: %s", side(run, store),
                       result->status.message[0] ? result->status.message : hf_strerror(error));
}

/* Whether to repeat an operation that has failed with this error. If so, waits first. *give_up: the
 * boot time from which on it is not repeated; 0 before the first failure, which sets it. */
static bool may_repeat(struct run *run, int error, hf_nsec *give_up) {
        if (error != HF_E_UNAVAILABLE && error != HF_E_TIMEOUT)
                return false;
        if (*give_up == 0)
                *give_up = now(run) + PATIENCE;
        if (now(run) >= *give_up)
                return false;
        hfd_waiter_pause(&run->waiter, now(run) + RETRY_PAUSE);
        return true;
}

struct range {
        struct hfd_store *store;
        const char *prefix, *start;
        uint64_t revision;
        size_t limit;
        bool keys_only;
};

static int start_list(struct run *run, const struct range *range, struct hfd_result *result) {
        hfd_waiter_begin(&run->waiter, result);
        return range->store->ops->list(range->store, range->prefix, range->start, range->revision,
                                       range->limit, range->keys_only, now(run) + TIMEOUT,
                                       hfd_result_fill, result);
}

/* Ends a list that was started, and repeats it if necessary. */
static int end_list(struct run *run, const struct range *range, struct hfd_result *result,
                    int started) {
        hf_nsec give_up = 0;
        int r = hfd_waiter_end(&run->waiter, result, started);

        while (may_repeat(run, r, &give_up))
                r = hfd_waiter_end(&run->waiter, result, start_list(run, range, result));
        return r != 0 ? fail_op(run, range->store, r, result) : 0;
}

static int list(struct run *run, const struct range *range, struct hfd_result *result) {
        return end_list(run, range, result, start_list(run, range, result));
}

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

/* Writes to the target. *ret_revision: that of the write. HF_E_CONFLICT: a compare failed; result
 * has the keys of the ops. */
static int write_txn(struct run *run, const struct hfd_compare *compares, size_t n_compares,
                     const struct hfd_op *ops, size_t n_ops, uint64_t *ret_revision) {
        struct hfd_store *to = run->copy->to;
        const char *keys[HFD_TXN_MAX];
        struct hfd_txn txn = {.compares = compares,
                              .n_compares = n_compares,
                              .ops = ops,
                              .n_ops = n_ops,
                              .get_on_failure = keys,
                              .n_get_on_failure = n_ops};
        struct hfd_result result = {0};
        bool unknown = false;
        hf_nsec give_up = 0;
        int r;

        for (size_t i = 0; i < n_ops; i++)
                keys[i] = ops[i].key;
        do {
                hfd_waiter_begin(&run->waiter, &result);
                r = hfd_waiter_end(&run->waiter, &result,
                                   to->ops->txn(to, &txn, now(run) + TIMEOUT, hfd_result_fill,
                                                &result));
                unknown = unknown || r == HF_E_TIMEOUT;
        } while (may_repeat(run, r, &give_up));
        *ret_revision = result.revision;
        if (r == HF_E_CONFLICT && unknown && was_applied(&txn, &result)) {
                *ret_revision = result.n_kvs > 0 ? result.kvs[0].mod_revision : 0;
                r = 0;
        }
        if (r == HF_E_CONFLICT)
                (void)hf_fail(run->status, r, "another program writes to the target: %s",
                              result.n_kvs > 0 ? result.kvs[0].key : run->mark_key);
        else if (r != 0)
                (void)fail_op(run, to, r, &result);
        hfd_result_deinit(&result);
        return r;
}

/* ---- all keys ---- */

/* Whether a key is not copied: it names revisions of its own store, or the copy writes it anew. */
static bool is_left_out(const struct run *run, const char *key) {
        static const char *const names[] = {"compact", "progress", "epoch", "copying"};
        char own[HFD_KEY_MAX];

        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
                if (hfd_key_own(own, run->copy->prefix, names[i]) == 0 && strcmp(own, key) == 0)
                        return true;
        return false;
}

static int add_entry(struct run *run, struct hfd_kv *kv) {
        if (run->n_entries == run->space) {
                size_t space = run->space > 0 ? 2 * run->space : PAGE;
                struct entry *bigger = realloc(run->entries, space * sizeof *bigger);

                if (!bigger)
                        return hf_fail(run->status, -ENOMEM, "out of memory");
                run->entries = bigger;
                run->space = space;
        }
        run->entries[run->n_entries++] =
                (struct entry){.key = (char *)kv->key, .mod_revision = kv->mod_revision};
        kv->key = NULL; /* taken from the result */
        return 0;
}

/* A look at the keys of a store that a copy includes: how to look, and what was found. */
struct survey {
        uint64_t revision; /* the revision to read at; 0 = the current one, which is then set */
        size_t n_keys;
        uint64_t last_write; /* the highest mod revision of a key */
        bool remember;       /* add the keys to run->entries */
};

static int survey_page(struct run *run, struct survey *survey, struct hfd_result *page) {
        int r = 0;

        for (size_t i = 0; i < page->n_kvs && r == 0; i++) {
                struct hfd_kv *kv = &page->kvs[i];

                if (is_left_out(run, kv->key))
                        continue;
                survey->n_keys++;
                if (kv->mod_revision > survey->last_write)
                        survey->last_write = kv->mod_revision;
                if (survey->remember)
                        r = add_entry(run, kv);
        }
        return r;
}

/* Looks at the keys that begin with the prefix, a page at a time. */
static int survey_prefix(struct run *run, struct hfd_store *store, const char *prefix,
                         struct survey *survey) {
        char start[HFD_KEY_MAX] = "";
        struct hfd_result page = {0};
        bool more = true;
        int r = 0;

        while (more && r == 0) {
                struct range range = {.store = store,
                                      .prefix = prefix,
                                      .start = start[0] ? start : NULL,
                                      .revision = survey->revision,
                                      .limit = PAGE,
                                      .keys_only = true};

                r = list(run, &range, &page);
                if (r != 0)
                        break;
                if (survey->revision == 0)
                        survey->revision = page.revision;
                more = page.more && page.n_kvs > 0;
                if (more)
                        hfd_key_after(start, page.kvs[page.n_kvs - 1].key);
                more = more && start[0];
                r = survey_page(run, survey, &page);
        }
        hfd_result_deinit(&page);
        return r;
}

static int survey(struct run *run, struct hfd_store *store, struct survey *found) {
        const char *const endings[] = {".holdfast/", "/"};
        char prefix[HFD_KEY_MAX];
        int r = 0;

        for (size_t i = 0; i < sizeof endings / sizeof endings[0] && r == 0; i++) {
                int n = snprintf(prefix, sizeof prefix, "%s%s", run->copy->prefix, endings[i]);

                if (n < 0 || (size_t)n >= sizeof prefix)
                        return hf_fail(run->status, HF_E_TOO_LARGE, "the prefix is too long");
                r = survey_prefix(run, store, prefix, found);
        }
        return r;
}

static int by_revision(const void *a, const void *b) {
        const struct entry *x = a, *y = b;

        if (x->mod_revision != y->mod_revision)
                return x->mod_revision < y->mod_revision ? -1 : 1;
        return strcmp(x->key, y->key);
}

/* ---- before the first write ---- */

static int check_source(struct run *run) {
        struct survey found = {.remember = true};
        bool incomplete = false;
        int r = survey(run, run->copy->from, &found);

        if (r == 0)
                r = hfd_copy_is_incomplete(run->copy->from, run->copy->prefix, now(run) + TIMEOUT,
                                           &incomplete, run->status);
        if (r != 0)
                return r;
        if (incomplete)
                return hf_fail(run->status, HF_E_INVALID,
                               "the source is a copy that was not completed");
        if (found.n_keys == 0)
                return hf_fail(run->status, HF_E_NOT_FOUND,
                               "the source has no key below %s: see --etcd-prefix",
                               run->copy->prefix);
        run->result->n_keys = found.n_keys;
        run->result->revision = found.revision;
        qsort(run->entries, run->n_entries, sizeof *run->entries, by_revision);
        return 0;
}

/* Refuses a target that has any key but the mark of this copy, also one that a copy leaves out. */
static int check_target(struct run *run) {
        const char *const endings[] = {"/", ".holdfast/"};
        char prefix[HFD_KEY_MAX];
        struct hfd_result found = {0};
        int r = 0;

        for (size_t i = 0; i < sizeof endings / sizeof endings[0] && r == 0; i++) {
                struct range range = {.store = run->copy->to,
                                      .prefix = prefix,
                                      .limit = 2,
                                      .keys_only = true};

                (void)snprintf(prefix, sizeof prefix, "%s%s", run->copy->prefix, endings[i]);
                r = list(run, &range, &found);
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
 * write. So the target is looked at once more, under the mark. An instance that has not written yet
 * stops when the mark reaches its watch.
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

/* Creates n keys in one write. values[i] is the result of a list of one key. */
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
                return hf_fail(run->status, r, "the target does not take the %zu bytes of %.200s",
                               ops[0].value->n, ops[0].key);
        /* The limit of this etcd is lower than the default. */
        r = write_values(run, values, n / 2);
        return r == 0 ? write_values(run, values + n / 2, n - n / 2) : r;
}

/* Reads the values of n entries, all at once. */
static int read_values(struct run *run, const struct entry *entries, size_t n,
                       struct hfd_result *values) {
        struct range ranges[BATCH];
        int started[BATCH], r = 0;

        for (size_t i = 0; i < n; i++) {
                ranges[i] = (struct range){.store = run->copy->from,
                                           .prefix = entries[i].key,
                                           .start = entries[i].key,
                                           .revision = run->result->revision,
                                           .limit = 1};
                started[i] = start_list(run, &ranges[i], &values[i]);
        }
        for (size_t i = 0; i < n; i++) {
                if (r != 0) { /* the others still have to be waited for */
                        (void)hfd_waiter_end(&run->waiter, &values[i], started[i]);
                        continue;
                }
                r = end_list(run, &ranges[i], &values[i], started[i]);
                if (r == 0 && (values[i].n_kvs != 1 || !values[i].kvs[0].value ||
                               strcmp(values[i].kvs[0].key, entries[i].key) != 0))
                        r = hf_fail(run->status, -EIO, "the source has lost the key %.200s",
                                    entries[i].key);
        }
        return r;
}

/* Copies n entries, in as many writes as their sizes need. */
static int copy_batch(struct run *run, const struct entry *entries, size_t n) {
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

static int copy_all(struct run *run) {
        const struct hfd_copy *copy = run->copy;
        size_t percent = 0;
        int r = 0;

        if (copy->on_progress)
                copy->on_progress(copy->ctx, 0, run->n_entries);
        for (size_t at = 0; at < run->n_entries && r == 0;) {
                size_t left = run->n_entries - at, n = left < BATCH ? left : BATCH;

                r = copy_batch(run, &run->entries[at], n);
                at += n;
                if (r == 0 && copy->on_progress && at * 100 / run->n_entries > percent) {
                        percent = at * 100 / run->n_entries;
                        copy->on_progress(copy->ctx, at, run->n_entries);
                }
        }
        return r;
}

/* Checks that neither store was changed by others. A write raises the highest mod revision of the
 * source. A deletion lowers the number of keys, unless a new key was written. */
static int check_end(struct run *run) {
        struct survey source = {0}, target = {0};
        int r = survey(run, run->copy->from, &source);

        if (r == 0)
                r = survey(run, run->copy->to, &target);
        if (r != 0)
                return r;
        if (source.last_write > run->result->revision || source.n_keys != run->n_entries)
                return hf_fail(run->status, HF_E_CONFLICT,
                               "the source was written to during the copy: stop all instances "
                               "that use it");
        if (target.n_keys != run->n_entries)
                return hf_fail(run->status, HF_E_CONFLICT,
                               "another program writes to the target: it has %zu keys "
                               "instead of %zu",
                               target.n_keys, run->n_entries);
        return 0;
}

static int run_copy(struct run *run) {
        int r = hfd_key_own(run->mark_key, run->copy->prefix, "copying");

        if (r == 0)
                r = hfd_key_own(run->epoch_key, run->copy->prefix, "epoch");
        if (r != 0)
                return hf_fail(run->status, r, "the prefix is too long");
        r = check_source(run);
        if (r == 0)
                r = check_target(run);
        if (r == 0)
                r = make_token(run);
        if (r == 0)
                r = mark_target(run);
        if (r == 0)
                r = copy_all(run);
        if (r == 0)
                r = check_end(run);
        return r == 0 ? remove_mark(run) : r;
}

int hfd_copy_run(const struct hfd_copy *copy, struct hfd_copy_result *ret_result,
                 struct hf_status *reterr_status) {
        struct run run = {.copy = copy, .result = ret_result, .status = reterr_status};

        *ret_result = (struct hfd_copy_result){0};
        int r = hfd_waiter_init(&run.waiter, copy->to->host);
        if (r != 0)
                return hf_fail(reterr_status, r, "%s", hf_strerror(r));
        r = run_copy(&run);
        for (size_t i = 0; i < run.n_entries; i++)
                free(run.entries[i].key);
        free(run.entries);
        hf__buf_unref(run.token);
        hfd_waiter_deinit(&run.waiter);
        return r;
}

int hfd_copy_is_incomplete(struct hfd_store *store, const char *prefix, hf_nsec deadline,
                           bool *ret_incomplete, struct hf_status *reterr_status) {
        struct hfd_waiter waiter;
        struct hfd_result found = {0};
        char key[HFD_KEY_MAX];
        int r = hfd_key_own(key, prefix, "copying");

        if (r == 0)
                r = hfd_waiter_init(&waiter, store->host);
        if (r != 0)
                return hf_fail(reterr_status, r, "%s", hf_strerror(r));
        hfd_waiter_begin(&waiter, &found);
        r = hfd_waiter_end(&waiter, &found,
                           store->ops->get(store, key, false, deadline, hfd_result_fill, &found));
        *ret_incomplete = r == 0 && found.n_kvs > 0;
        if (r != 0)
                *reterr_status = found.status;
        hfd_result_deinit(&found);
        hfd_waiter_deinit(&waiter);
        return r;
}
