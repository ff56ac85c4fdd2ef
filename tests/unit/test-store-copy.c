/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies between two stores in memory: what is copied and in which order, what is refused, and what
 * a failure leaves behind. tests/integration/test_store_commands.py copies between files and etcd.
 */
#undef NDEBUG
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "server/storage/copy.h"
#include "server/storage/epoch.h"
#include "server/storage/memory/store.h"
#include "store_client.h"

#define MARK  "/registry.holdfast/copying"
#define EPOCH "/registry.holdfast/epoch"

static const struct hf_host host = {.size = sizeof(struct hf_host)};

/* A store whose transactions fail as the test says. */
struct bad_store {
        struct hfd_store base; /* first */
        struct hfd_store *inner;
        int fail_at; /* the number of the transaction that fails; 0 = none */
        int error;
        bool applied;     /* it takes effect all the same */
        size_t max_bytes; /* of all values of a transaction; 0 = no limit */
        int n_txns;
        bool fails_lists;   /* those after the first transaction */
        const char *theirs; /* the value that another program writes meanwhile */
        hfd_store_fn done;
        void *ctx;
};

/* A source of which one read of a value fails, or finds no key. */
struct bad_source {
        struct hfd_store base; /* first */
        struct hfd_store *inner;
        int fail_at; /* the number of the read; 0 = none */
        int error;   /* 0: the key is lost */
        int n_reads;
        int fail_list_at; /* the number of the list of keys that fails; 0 = none */
        int n_lists;
        int fail_get_at; /* the number of the get that fails; 0 = none */
        int n_gets;
};

struct fixture {
        struct hfd_store *from, *to;
        struct bad_source reads; /* around `from` */
        size_t reported[128];    /* the calls of on_progress */
        size_t n_reported;
        struct bad_store bad; /* around `to` */
        struct hfd_copy_source source;
        struct hfd_copy copy;
        struct hfd_copy_result result;
        struct hf_status status;
        size_t n_keys; /* of the source */
};

static int bad_get(struct hfd_store *store, const char *key, bool urgent, hf_nsec deadline,
                   hfd_store_fn done, void *ctx) {
        struct hfd_store *inner = ((struct bad_store *)store)->inner;

        return inner->ops->get(inner, key, urgent, deadline, done, ctx);
}

static int bad_list(struct hfd_store *store, const char *prefix, const char *start,
                    uint64_t revision, size_t limit, bool keys_only, hf_nsec deadline,
                    hfd_store_fn done, void *ctx) {
        struct bad_store *bad = (struct bad_store *)store;

        if (bad->fails_lists && bad->n_txns > 0) {
                struct hfd_store_reply failed = {.error = -EIO};
                done(ctx, &failed);
                return 0;
        }
        return bad->inner->ops->list(bad->inner, prefix, start, revision, limit, keys_only,
                                     deadline, done, ctx);
}

static void lose_reply(void *ctx, const struct hfd_store_reply *reply) {
        struct bad_store *bad = ctx;
        struct hfd_store_reply lost = {.error = bad->error, .status = reply->status};

        bad->done(bad->ctx, &lost);
}

static int bad_txn(struct hfd_store *store, const struct hfd_txn *txn, hf_nsec deadline,
                   hfd_store_fn done, void *ctx) {
        struct bad_store *bad = (struct bad_store *)store;
        struct hfd_store_reply failed = {.error = bad->error};
        bool fails = ++bad->n_txns == bad->fail_at;
        size_t n_bytes = 0;

        for (size_t i = 0; i < txn->n_ops; i++)
                n_bytes += txn->ops[i].value ? txn->ops[i].value->n : 0;
        if (bad->max_bytes > 0 && n_bytes > bad->max_bytes) {
                failed.error = HF_E_TOO_LARGE;
                done(ctx, &failed);
                return 0;
        }
        if (!fails)
                return bad->inner->ops->txn(bad->inner, txn, deadline, done, ctx);
        if (!bad->applied) {
                (void)hf_fail(&failed.status, failed.error, "the test says so");
                done(ctx, &failed);
                return 0;
        }
        bad->done = done;
        bad->ctx = ctx;
        return bad->inner->ops->txn(bad->inner, txn, deadline, lose_reply, bad);
}

static const struct hfd_store_ops bad_ops = {.get = bad_get, .list = bad_list, .txn = bad_txn};

static int read_get(struct hfd_store *store, const char *key, bool urgent, hf_nsec deadline,
                    hfd_store_fn done, void *ctx) {
        struct bad_source *reads = (struct bad_source *)store;
        struct hfd_store_reply failed = {.error = reads->error};

        if (++reads->n_gets != reads->fail_get_at)
                return reads->inner->ops->get(reads->inner, key, urgent, deadline, done, ctx);
        (void)hf_fail(&failed.status, failed.error, "the test says so");
        done(ctx, &failed);
        return 0;
}

static int read_list(struct hfd_store *store, const char *prefix, const char *start,
                     uint64_t revision, size_t limit, bool keys_only, hf_nsec deadline,
                     hfd_store_fn done, void *ctx) {
        struct bad_source *reads = (struct bad_source *)store;
        struct hfd_store_reply failed = {.error = reads->error};

        if (limit != 1 && ++reads->n_lists == reads->fail_list_at) {
                failed.error = -EIO;
                done(ctx, &failed);
                return 0;
        }
        if (limit != 1 || ++reads->n_reads != reads->fail_at)
                return reads->inner->ops->list(reads->inner, prefix, start, revision, limit,
                                               keys_only, deadline, done, ctx);
        if (failed.error != 0)
                (void)hf_fail(&failed.status, failed.error, "the test says so");
        done(ctx, &failed);
        return 0;
}

static const struct hfd_store_ops source_ops = {.get = read_get, .list = read_list};

static int setup(void **state) {
        struct fixture *f = calloc(1, sizeof *f);

        assert_non_null(f);
        assert_int_equal(hfd_memory_store_new(&host, &f->from), 0);
        assert_int_equal(hfd_memory_store_new(&host, &f->to), 0);
        f->bad = (struct bad_store){.base = {.ops = &bad_ops, .host = &host}, .inner = f->to};
        f->reads = (struct bad_source){.base = {.ops = &source_ops, .host = &host}};
        f->copy = (struct hfd_copy){.source = &f->source, .to = &f->bad.base};
        *state = f;
        return 0;
}

static int teardown(void **state) {
        struct fixture *f = *state;

        f->from->ops->free(f->from);
        f->to->ops->free(f->to);
        free(f);
        return 0;
}

static int run(struct fixture *f) {
        memset(&f->status, 0, sizeof f->status);
        memset(&f->result, 0, sizeof f->result);
        f->reads.inner = f->from;
        int r = hfd_copy_source_read(&f->source, &f->reads.base, "/registry", &f->status);
        f->n_keys = f->source.n_entries;
        if (r == 0)
                r = hfd_copy_run(&f->copy, &f->result, &f->status);
        hfd_copy_source_deinit(&f->source);
        return r;
}

static void expect_failure(struct fixture *f, int error, bool incomplete, const char *why) {
        assert_int_equal(run(f), error);
        assert_int_equal(f->result.incomplete, incomplete);
        if (!strstr(f->status.message, why))
                fail_msg("\"%s\" does not say \"%s\"", f->status.message, why);
}

static void put(struct hfd_store *store, const char *key, const char *value) {
        assert_true(store_client_put(store, key, value) > 0);
}

static void assert_has(struct hfd_store *store, const char *key, const char *value) {
        struct store_reply reply;

        assert_int_equal(store_client_get(store, key, &reply), 0);
        if (reply.n_kvs == 0)
                fail_msg("%s was not copied", key);
        assert_string_equal(store_reply_value(&reply, 0), value);
        store_reply_deinit(&reply);
}

static size_t count(struct hfd_store *store, const char *prefix) {
        struct store_reply reply;

        assert_int_equal(store_client_list(store, prefix, NULL, 0, 0, true, &reply), 0);
        size_t n = reply.n_kvs;
        store_reply_deinit(&reply);
        return n;
}

static void test_values_are_copied_in_the_order_of_their_writes(void **state) {
        struct fixture *f = *state;
        char key[64], value[64];

        put(f->from, "/other/key", "of another program");
        for (int i = 0; i < 100; i++) { /* the later the write, the earlier the key */
                (void)snprintf(key, sizeof key, "/registry/configmaps/default/n%02d", 99 - i);
                (void)snprintf(value, sizeof value, "{\"uid\":\"%d\"}", i);
                put(f->from, key, value);
        }
        put(f->from, "/registry.holdfast/terms/kube-system/x", "a\nb");
        put(f->from, "/registry.holdfast/compact", "3 1");
        put(f->from, "/registry.holdfast/progress", "p");
        put(f->from, EPOCH, "before");
        put(f->from, "/registry/configmaps/default/n50", "last");
        assert_int_equal(run(f), 0);
        assert_int_equal(f->n_keys, 101);
        assert_false(f->result.incomplete);
        assert_int_equal(count(f->to, "/"), 102); /* and the epoch */
        assert_has(f->to, "/registry/configmaps/default/n99", "{\"uid\":\"0\"}");
        assert_has(f->to, "/registry/configmaps/default/n50", "last");
        assert_has(f->to, "/registry.holdfast/terms/kube-system/x", "a\nb");
        uint64_t last = 0;
        for (int i = 0; i < 100; i++) {
                if (i == 49)
                        continue;
                (void)snprintf(key, sizeof key, "/registry/configmaps/default/n%02d", 99 - i);
                uint64_t revision = store_client_mod_revision(f->to, key);
                assert_true(revision >= last);
                last = revision;
        }
        assert_true(store_client_mod_revision(f->to, "/registry/configmaps/default/n50") >= last);
        struct store_reply epoch;
        assert_int_equal(store_client_get(f->to, EPOCH, &epoch), 0);
        assert_string_not_equal(store_reply_value(&epoch, 0), "before");
        store_reply_deinit(&epoch);
}

/* The random number tells apart two epochs of one microsecond, and the time those of two machines
 * with the same random numbers. */
static void test_an_epoch_is_a_time_and_a_random_number(void **state) {
        const struct hf_clock *clock = hf_clock_system();
        char epochs[2][HFD_EPOCH_MAX], before[HF__MICROTIME_MAX], after[HF__MICROTIME_MAX];
        struct hf_status status;

        hf__microtime_format(clock->real(clock->ctx) / 1000, before);
        for (int i = 0; i < 2; i++)
                assert_int_equal(hfd_epoch_make(epochs[i], &status), 0);
        hf__microtime_format(clock->real(clock->ctx) / 1000, after);
        for (int i = 0; i < 2; i++) {
                char *dash = strrchr(epochs[i], '-');
                assert_non_null(dash);
                assert_int_equal(strspn(dash + 1, "0123456789abcdef"), 16);
                assert_int_equal(strlen(dash + 1), 16);
                *dash = '\0';
                assert_true(strcmp(before, epochs[i]) <= 0 && strcmp(epochs[i], after) <= 0);
        }
        assert_string_not_equal(strchr(epochs[0], '\0') + 1, strchr(epochs[1], '\0') + 1);
}

static void test_large_values_are_written_apart(void **state) {
        struct fixture *f = *state;
        char *large = malloc(400001), key[64];

        assert_non_null(large);
        memset(large, 'x', 400000);
        large[400000] = '\0';
        for (int i = 0; i < 4; i++) {
                (void)snprintf(key, sizeof key, "/registry/secrets/default/n%d", i);
                put(f->from, key, large);
        }
        assert_int_equal(run(f), 0);
        for (int i = 0; i < 4; i++) {
                (void)snprintf(key, sizeof key, "/registry/secrets/default/n%d", i);
                assert_has(f->to, key, large);
        }
        assert_int_equal(f->bad.n_txns, 6); /* the mark, one for each value, the end */
        free(large);
}

/* etcd's limit is for a whole request. Clients may write only a little less to the other stores. */
static void test_the_largest_value_of_an_etcd_is_copied(void **state) {
        static const char key[] = "/registry/secrets/default/n";
        struct fixture *f = *state;
        struct hf__buf *value = hf__buf_new((size_t)1536 * 1024 - 2 * strlen(key));

        assert_non_null(value);
        memset(value->data, 'x', value->n);
        const struct hfd_op op = {.kind = HFD_PUT, .key = key, .value = value};
        struct hfd_txn txn = {.ops = &op, .n_ops = 1};
        struct store_reply reply;
        assert_int_equal(store_client_txn(f->from, &txn, &reply), HF_E_TOO_LARGE);
        store_reply_deinit(&reply);
        txn.copied = true;
        assert_int_equal(store_client_txn(f->from, &txn, &reply), 0);
        store_reply_deinit(&reply);
        assert_int_equal(run(f), 0);
        assert_int_equal(store_client_get(f->to, key, &reply), 0);
        assert_int_equal(reply.n_kvs, 1);
        assert_int_equal(reply.kvs[0].value->n, value->n);
        store_reply_deinit(&reply);
        hf__buf_unref(value);
}

/* An etcd with a lower limit of its requests. */
static void test_a_target_with_a_limit_gets_smaller_writes(void **state) {
        struct fixture *f = *state;
        char key[64], value[1001];

        memset(value, 'x', 1000);
        value[1000] = '\0';
        for (int i = 0; i < 20; i++) {
                (void)snprintf(key, sizeof key, "/registry/secrets/default/n%02d", i);
                put(f->from, key, value);
        }
        f->bad.max_bytes = 3500;
        assert_int_equal(run(f), 0);
        assert_int_equal(count(f->to, "/registry/"), 20);
        assert_true(store_client_delete(f->to, EPOCH) > 0);
        for (int i = 0; i < 20; i++) {
                (void)snprintf(key, sizeof key, "/registry/secrets/default/n%02d", i);
                assert_true(store_client_delete(f->to, key) > 0);
        }
        f->bad.max_bytes = 999;
        expect_failure(f, HF_E_TOO_LARGE, true, "1000 bytes of /registry/secrets/default/n00");
}

static void test_a_target_that_is_not_empty_is_refused_and_kept(void **state) {
        struct fixture *f = *state;

        put(f->from, "/registry/a/b", "x");
        put(f->to, "/registry.holdfast/compact", "1 1");
        uint64_t revision = store_client_revision(f->to);
        expect_failure(f, HF_E_EXISTS, false, "/registry.holdfast/compact");
        assert_int_equal(store_client_revision(f->to), revision);
}

static void test_keys_of_other_programs_in_the_target_are_no_obstacle(void **state) {
        struct fixture *f = *state;

        put(f->from, "/registry/a/b", "x");
        put(f->to, "/registry0", "theirs");
        put(f->to, "/calico/x", "theirs");
        assert_int_equal(run(f), 0);
}

static void test_a_source_without_keys_is_refused(void **state) {
        struct fixture *f = *state;

        put(f->from, "/other/a", "x");
        expect_failure(f, HF_E_NOT_FOUND, false, "/registry");
        assert_int_equal(count(f->to, "/"), 0);
}

static void write_to_source(void *ctx, size_t n_copied, size_t n_keys) {
        struct fixture *f = ctx;

        if (n_copied == 0)
                put(f->from, "/registry/a/late", "x");
}

static void change_source(void *ctx, size_t n_copied, size_t n_keys) {
        struct fixture *f = ctx;

        if (n_copied == 0)
                put(f->from, "/registry/a/c", "new");
}

static void delete_from_source(void *ctx, size_t n_copied, size_t n_keys) {
        struct fixture *f = ctx;

        if (n_copied == 0)
                assert_true(store_client_delete(f->from, "/registry/a/b") > 0);
}

static void write_to_target(void *ctx, size_t n_copied, size_t n_keys) {
        struct fixture *f = ctx;

        if (n_copied == 0)
                put(f->to, "/registry/a/c", "theirs");
}

static void test_a_write_to_the_source_is_noticed(void **state) {
        struct fixture *f = *state;
        void (*const changes[])(void *, size_t, size_t) = {write_to_source, change_source,
                                                           delete_from_source};

        for (int i = 0; i < 3; i++) {
                put(f->from, "/registry/a/b", "x");
                put(f->from, "/registry/a/c", "x");
                f->copy.on_progress = changes[i];
                f->copy.ctx = f;
                expect_failure(f, HF_E_CONFLICT, true, "source was written to");
                assert_int_equal(store_client_delete(f->to, MARK) > 0, true);
                expect_failure(f, HF_E_EXISTS, false, "not empty");
                assert_true(store_client_delete(f->to, "/registry/a/b") > 0);
                assert_true(store_client_delete(f->to, "/registry/a/c") > 0);
                if (i == 0)
                        assert_true(store_client_delete(f->from, "/registry/a/late") > 0);
        }
}

static void add_to_target(void *ctx, size_t n_copied, size_t n_keys) {
        struct fixture *f = ctx;

        if (n_copied == 0)
                put(f->to, "/registry/b/a", "theirs");
}

static void test_an_object_of_another_program_is_noticed(void **state) {
        struct fixture *f = *state;

        put(f->from, "/registry/a/b", "x");
        put(f->from, "/registry/a/c", "x");
        f->copy.on_progress = add_to_target;
        f->copy.ctx = f;
        expect_failure(f, HF_E_CONFLICT, true, "it has 3 keys instead of 2");
        assert_has(f->to, "/registry/b/a", "theirs");
}

static void test_an_object_of_another_program_is_not_overwritten(void **state) {
        struct fixture *f = *state;

        put(f->from, "/registry/a/b", "x");
        put(f->from, "/registry/a/c", "x");
        f->copy.on_progress = write_to_target;
        f->copy.ctx = f;
        expect_failure(f, HF_E_CONFLICT, true, "/registry/a/c");
        assert_has(f->to, "/registry/a/c", "theirs");
        assert_int_equal(store_client_mod_revision(f->to, "/registry/a/b"), 0);
}

static void test_an_incomplete_copy_is_marked_and_not_copied(void **state) {
        struct fixture *f = *state;
        bool incomplete = false;

        put(f->from, "/registry/a/b", "x");
        f->bad.fail_at = 2; /* the values */
        f->bad.error = -ENOSPC;
        expect_failure(f, -ENOSPC, true, "the target: the test says so");
        assert_int_equal(hfd_copy_is_incomplete(f->to, "/registry", HF_NSEC_NEVER, &incomplete,
                                                &f->status),
                         0);
        assert_true(incomplete);
        f->bad.fail_at = 0;
        expect_failure(f, HF_E_EXISTS, false, MARK);
        struct hfd_store *other = f->from;
        put(f->to, "/registry/a/b", "x");
        f->from = f->to;
        f->to = f->copy.to = other;
        expect_failure(f, HF_E_INVALID, false, "not completed");
}

/* The mark of a copy that has begun since the target was looked at. */
static void mark_target(struct hfd_store *store) {
        struct bad_store *bad = (struct bad_store *)store;

        if (bad->n_txns == 0)
                put(bad->inner, MARK, "of another copy");
}

static int marking_txn(struct hfd_store *store, const struct hfd_txn *txn, hf_nsec deadline,
                       hfd_store_fn done, void *ctx) {
        mark_target(store);
        return bad_txn(store, txn, deadline, done, ctx);
}

static void test_two_copies_exclude_each_other(void **state) {
        static const struct hfd_store_ops ops = {.get = bad_get,
                                                 .list = bad_list,
                                                 .txn = marking_txn};
        struct fixture *f = *state;

        put(f->from, "/registry/a/b", "x");
        f->bad.base.ops = &ops;
        expect_failure(f, HF_E_CONFLICT, false, MARK);
        assert_has(f->to, MARK, "of another copy");
        assert_int_equal(count(f->to, "/"), 1);
}

static int starting_txn(struct hfd_store *store, const struct hfd_txn *txn, hf_nsec deadline,
                        hfd_store_fn done, void *ctx) {
        struct bad_store *bad = (struct bad_store *)store;

        if (bad->n_txns == 0)
                put(bad->inner, "/registry/namespaces/default", "of an instance");
        return bad_txn(store, txn, deadline, done, ctx);
}

/* The mark was not there when an instance looked for it, and the target was empty when the copy
 * looked. The target is left to the instance as it was. */
static void test_an_instance_that_begins_before_the_mark_keeps_the_target(void **state) {
        static const struct hfd_store_ops ops = {.get = bad_get,
                                                 .list = bad_list,
                                                 .txn = starting_txn};
        struct fixture *f = *state;

        put(f->from, "/registry/a/b", "x");
        f->bad.base.ops = &ops;
        expect_failure(f, HF_E_EXISTS, false, "not empty: it has the key /registry/namespaces/");
        assert_int_equal(count(f->to, "/"), 1);
        assert_true(store_client_delete(f->to, "/registry/namespaces/default") > 0);
        /* If the mark cannot be removed, the message says that something must be done. */
        f->bad.n_txns = 0;
        f->bad.fail_at = 2;
        f->bad.error = -ENOSPC;
        expect_failure(f, HF_E_EXISTS, true, "not empty");
}

static void test_a_read_is_repeated(void **state) {
        struct fixture *f = *state;

        put(f->from, "/registry/a/b", "x");
        put(f->from, "/registry/a/c", "y");
        put(f->from, "/registry/a/d", "z");
        f->reads.fail_at = 2;
        f->reads.error = HF_E_UNAVAILABLE;
        assert_int_equal(run(f), 0);
        assert_int_equal(f->reads.n_reads, 4);
        assert_has(f->to, "/registry/a/b", "x");
        assert_has(f->to, "/registry/a/c", "y");
        assert_has(f->to, "/registry/a/d", "z");
}

/* The reads of a batch begin together. Those after the one that fails have their replies, too. */
static void test_the_read_of_the_mark_is_repeated(void **state) {
        struct fixture *f = *state;

        put(f->from, "/registry/a/b", "x");
        f->reads.fail_get_at = 1;
        f->reads.error = HF_E_UNAVAILABLE;
        assert_int_equal(run(f), 0);
        assert_int_equal(f->reads.n_gets, 2);
        assert_has(f->to, "/registry/a/b", "x");
}

static void test_a_mark_that_cannot_be_read_ends_the_copy(void **state) {
        struct fixture *f = *state;

        put(f->from, "/registry/a/b", "x");
        f->reads.fail_get_at = 1;
        f->reads.error = -EIO;
        expect_failure(f, -EIO, false, "the source: the test says so");
}

static void test_a_read_that_fails_ends_the_copy(void **state) {
        struct fixture *f = *state;

        put(f->from, "/registry/a/b", "x");
        put(f->from, "/registry/a/c", "y");
        put(f->from, "/registry/a/d", "z");
        f->reads.fail_at = 1;
        f->reads.error = -EIO;
        expect_failure(f, -EIO, true, "the source: the test says so");
        assert_int_equal(count(f->to, "/registry/"), 0);
        assert_int_equal(f->reads.n_reads, 3);
}

static void test_a_key_that_the_source_has_lost_ends_the_copy(void **state) {
        struct fixture *f = *state;

        put(f->from, "/registry/a/b", "x");
        put(f->from, "/registry/a/c", "y");
        f->reads.fail_at = 2;
        expect_failure(f, -EIO, true, "the source has lost the key /registry/a/c");
        assert_int_equal(count(f->to, "/registry/"), 0);
}

static void note_progress(void *ctx, size_t n_copied, size_t n_keys) {
        struct fixture *f = ctx;

        assert_true(f->n_reported < sizeof f->reported / sizeof f->reported[0]);
        assert_int_equal(n_keys, f->source.n_entries);
        f->reported[f->n_reported++] = n_copied;
}

/* There are more batches than per cent. */
static void test_each_per_cent_is_reported_once(void **state) {
        enum { N = 150 * HFD_TXN_MAX };
        struct fixture *f = *state;
        char key[64];

        for (int i = 0; i < N; i++) {
                (void)snprintf(key, sizeof key, "/registry/configmaps/default/n%04d", i);
                put(f->from, key, "x");
        }
        f->copy.on_progress = note_progress;
        f->copy.ctx = f;
        assert_int_equal(run(f), 0);
        assert_int_equal(f->n_reported, 101);
        assert_int_equal(f->reported[0], 0);
        for (size_t i = 1; i <= 100; i++)
                assert_int_equal(f->reported[i] * 100 / N, i);
}

/* Each write in turn is applied and its reply is lost, or is not applied at first. */
static void test_writes_are_repeated(void **state) {
        static const struct {
                int error;
                bool applied;
        } faults[] = {{HF_E_TIMEOUT, true}, {HF_E_TIMEOUT, false}, {HF_E_UNAVAILABLE, false}};

        for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
                for (int at = 1; at <= 3; at++) {
                        struct fixture *f;
                        void *own = NULL;

                        assert_int_equal(setup(&own), 0);
                        f = own;
                        put(f->from, "/registry/a/b", "x");
                        put(f->from, "/registry/a/c", "y");
                        f->bad.fail_at = at;
                        f->bad.error = faults[i].error;
                        f->bad.applied = faults[i].applied;
                        if (run(f) != 0)
                                fail_msg("write %d: %s", at, f->status.message);
                        assert_int_equal(f->bad.n_txns, 4);
                        assert_int_equal(count(f->to, "/"), 3);
                        assert_has(f->to, "/registry/a/c", "y");
                        assert_int_equal(teardown(&own), 0);
                }
}

static int intruding_txn(struct hfd_store *store, const struct hfd_txn *txn, hf_nsec deadline,
                         hfd_store_fn done, void *ctx) {
        struct bad_store *bad = (struct bad_store *)store;

        if (bad->n_txns == 2)
                put(bad->inner, "/registry/a/b", bad->theirs);
        return bad_txn(store, txn, deadline, done, ctx);
}

/* It is unknown whether the write of the values was applied, until it is repeated: but what the
 * target has now is not what the write would have left. */
static void test_the_writes_of_others_are_not_taken_for_its_own(void **state) {
        static const struct hfd_store_ops ops = {.get = bad_get,
                                                 .list = bad_list,
                                                 .txn = intruding_txn};
        static const char *const theirs[] = {"q", "xx", "", "x"}; /* the last one is equal */

        for (size_t i = 0; i < sizeof theirs / sizeof theirs[0]; i++) {
                struct fixture *f;
                void *own = NULL;

                assert_int_equal(setup(&own), 0);
                f = own;
                put(f->from, "/registry/a/b", "x");
                put(f->from, "/registry/a/c", "y");
                f->bad.base.ops = &ops;
                f->bad.theirs = theirs[i];
                f->bad.fail_at = 2;
                f->bad.error = HF_E_TIMEOUT;
                expect_failure(f, HF_E_CONFLICT, true, "writes to the target: /registry/a/b");
                assert_has(f->to, "/registry/a/b", theirs[i]);
                assert_int_equal(store_client_mod_revision(f->to, "/registry/a/c"), 0);
                assert_int_equal(teardown(&own), 0);
        }
}

/* The source is listed twice before the copy: its own keys, and those of objects. */
static void test_a_copy_that_cannot_be_compared_is_incomplete(void **state) {
        struct fixture *f = *state;

        put(f->from, "/registry/a/b", "x");
        f->bad.fails_lists = true;
        expect_failure(f, -EIO, true, "the target: ");
        f->bad.fails_lists = false;
        assert_true(store_client_delete(f->to, MARK) > 0);
        assert_true(store_client_delete(f->to, "/registry/a/b") > 0);
        f->reads.n_lists = 0;
        f->reads.fail_list_at = 3;
        expect_failure(f, -EIO, true, "the source: ");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_values_are_copied_in_the_order_of_their_writes,
                                                setup, teardown),
                cmocka_unit_test(test_an_epoch_is_a_time_and_a_random_number),
                cmocka_unit_test_setup_teardown(test_large_values_are_written_apart, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(test_the_largest_value_of_an_etcd_is_copied, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(test_a_target_with_a_limit_gets_smaller_writes,
                                                setup, teardown),
                cmocka_unit_test_setup_teardown(test_a_target_that_is_not_empty_is_refused_and_kept,
                                                setup, teardown),
                cmocka_unit_test_setup_teardown(
                        test_keys_of_other_programs_in_the_target_are_no_obstacle, setup, teardown),
                cmocka_unit_test_setup_teardown(test_a_source_without_keys_is_refused, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(test_a_write_to_the_source_is_noticed, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(test_an_object_of_another_program_is_noticed, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(
                        test_an_object_of_another_program_is_not_overwritten, setup, teardown),
                cmocka_unit_test_setup_teardown(test_an_incomplete_copy_is_marked_and_not_copied,
                                                setup, teardown),
                cmocka_unit_test_setup_teardown(test_two_copies_exclude_each_other, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(
                        test_an_instance_that_begins_before_the_mark_keeps_the_target, setup,
                        teardown),
                cmocka_unit_test_setup_teardown(test_a_read_is_repeated, setup, teardown),
                cmocka_unit_test_setup_teardown(test_the_read_of_the_mark_is_repeated, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(test_a_mark_that_cannot_be_read_ends_the_copy,
                                                setup, teardown),
                cmocka_unit_test_setup_teardown(test_a_read_that_fails_ends_the_copy, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(test_a_key_that_the_source_has_lost_ends_the_copy,
                                                setup, teardown),
                cmocka_unit_test_setup_teardown(test_each_per_cent_is_reported_once, setup,
                                                teardown),
                cmocka_unit_test(test_writes_are_repeated),
                cmocka_unit_test(test_the_writes_of_others_are_not_taken_for_its_own),
                cmocka_unit_test_setup_teardown(test_a_copy_that_cannot_be_compared_is_incomplete,
                                                setup, teardown),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
