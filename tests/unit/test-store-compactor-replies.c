/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a compactor reacts to each reply of its store. The test is the store: it looks at each
 * operation, and answers it when it wants to. test-store-compactor.c has a real one.
 */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "failing_memory.h"
#include "server/storage/compactor.h"
#include "server/storage/keys.h"
#include "text_asserts.h"
#include "time_units.h"

#define PREFIX "/registry"
#define SUFFIX ".holdfast/compact"
#define KEY    PREFIX SUFFIX

#define INTERVAL (300 * HF_NSEC_PER_SEC)
#define STEP     (INTERVAL / HFD_COMPACT_N_STEPS)

struct fixture {
        struct hfd_store store; /* first */
        struct hf_host host;
        struct hf_clock clock;
        struct hfd_compactor *compactor;
        hf_nsec now;
        int refuses; /* the store starts no operation; 0 = it does */

        char operation[64]; /* the one that waits for its reply; "" = none */
        hf_nsec deadline;   /* of it */
        hfd_store_fn done;
        void *ctx;
        char log[1024];
};

/* ---- the store ---- */

static int start(struct hfd_store *store, hf_nsec deadline, hfd_store_fn done, void *ctx) {
        struct fixture *f = (struct fixture *)store;

        if (f->refuses != 0)
                return f->refuses;
        assert(!f->done);
        f->deadline = deadline;
        f->done = done;
        f->ctx = ctx;
        return 0;
}

static int get(struct hfd_store *store, const char *key, bool urgent, hf_nsec deadline,
               hfd_store_fn done, void *ctx) {
        assert_string_equal(key, KEY);
        assert_false(urgent);
        strcpy(((struct fixture *)store)->operation, "get");
        return start(store, deadline, done, ctx);
}

/* "put VALUE at REVISION", the revision that the key must have. The value of the compact key is
 * "R N": R is the revision of the next compaction, and N how many steps it has waited. */
static int txn(struct hfd_store *store, const struct hfd_txn *transaction, hf_nsec deadline,
               hfd_store_fn done, void *ctx) {
        struct fixture *f = (struct fixture *)store;
        const struct hfd_compare *compare = transaction->compares;

        assert_int_equal(hfd_txn_check(transaction), 0);
        assert_int_equal(transaction->n_compares, 1);
        assert_int_equal(transaction->n_ops, 1);
        assert_int_equal(transaction->n_get_on_failure, 1);
        assert_int_equal(compare->kind, HFD_MOD_EQUALS);
        assert_int_equal(transaction->ops[0].kind, HFD_PUT);
        assert_string_equal(compare->key, KEY);
        assert_string_equal(transaction->ops[0].key, KEY);
        assert_string_equal(transaction->get_on_failure[0], KEY);
        (void)snprintf(f->operation, sizeof f->operation, "put %s at %" PRIu64,
                       transaction->ops[0].value->data, compare->revision);
        return start(store, deadline, done, ctx);
}

static int compact(struct hfd_store *store, uint64_t revision, hf_nsec deadline, hfd_store_fn done,
                   void *ctx) {
        struct fixture *f = (struct fixture *)store;

        (void)snprintf(f->operation, sizeof f->operation, "compact %" PRIu64, revision);
        return start(store, deadline, done, ctx);
}

static const struct hfd_store_ops ops = {.get = get, .txn = txn, .compact = compact};

static hf_nsec clock_now(void *ctx) { return ((struct fixture *)ctx)->now; }

static void on_log(void *ctx, enum hf_log_level level, const char *component, const char *message) {
        struct fixture *f = ctx;
        size_t n = strlen(f->log);

        (void)snprintf(f->log + n, sizeof f->log - n, "%d %s: %s\n", (int)level, component,
                       message);
}

static int setup(void **state) {
        struct fixture *f = calloc(1, sizeof *f);

        assert_non_null(f);
        f->now = 1000 * SEC;
        f->clock = (struct hf_clock){sizeof(struct hf_clock),
                                     clock_now,
                                     clock_now,
                                     clock_now,
                                     NULL,
                                     f};
        f->host = (struct hf_host){.size = sizeof f->host,
                                   .clock = &f->clock,
                                   .log = {.write = on_log, .ctx = f}};
        f->store = (struct hfd_store){.ops = &ops, .host = &f->host};
        assert_int_equal(hfd_compactor_new(&f->host, &f->store, PREFIX, INTERVAL, &f->compactor),
                         0);
        *state = f;
        return 0;
}

static int teardown(void **state) {
        struct fixture *f = *state;

        assert_null(f->done);
        hfd_compactor_free(f->compactor);
        free(f);
        return 0;
}

/* ---- steps of a test ---- */

static void expect(const struct fixture *f, const char *operation) {
        assert_string_equal(f->done ? f->operation : "", operation);
        if (f->done)
                assert_int_equal(f->deadline, f->now + 10 * SEC);
}

/* The next attempt is due, and begins with this operation. */
static void tick(struct fixture *f, const char *operation) {
        f->now += STEP;
        hfd_compactor_tick(f->compactor, f->now);
        expect(f, operation);
}

/* Answers; the compactor then starts this operation ("" = none). */
static void answer(struct fixture *f, struct hfd_store_reply reply, const char *operation) {
        hfd_store_fn done = f->done;

        assert_non_null(done);
        f->done = NULL;
        if (reply.error != 0)
                (void)hf_fail(&reply.status, reply.error, "the test says so");
        errno = ERANGE; /* nobody may rely on it */
        done(f->ctx, &reply);
        expect(f, operation);
}

/* Replies that the key has this value since revision mod, and that the store is at `revision`. */
static void answer_value(struct fixture *f, const char *value, uint64_t mod, uint64_t revision,
                         const char *operation) {
        struct hfd_kv kv = {.key = KEY, .value = hf__buf_copy(value, strlen(value))};

        assert_non_null(kv.value);
        kv.mod_revision = mod;
        answer(f, (struct hfd_store_reply){.revision = revision, .kvs = &kv, .n_kvs = 1},
               operation);
        hf__buf_unref(kv.value);
}

static void answer_error(struct fixture *f, int error) {
        answer(f, (struct hfd_store_reply){.error = error}, "");
}

/* Sees that key without knowing how long it has been there, and adds a step at the next tick. */
static void see_twice(struct fixture *f, const char *value, const char *operation) {
        tick(f, "get");
        answer_value(f, value, 20, 100, "");
        tick(f, "get");
        answer_value(f, value, 20, 100, operation);
}

/* ---- tests ---- */

static void test_an_attempt_reads_then_writes_then_compacts(void **state) {
        struct fixture *f = *state;

        see_twice(f, "15 9", "put 100 0 at 20");
        f->now += STEP; /* one attempt at a time */
        hfd_compactor_tick(f->compactor, f->now);
        assert_string_equal(f->operation, "put 100 0 at 20");
        answer(f, (struct hfd_store_reply){.revision = 101}, "compact 15");
        answer(f, (struct hfd_store_reply){.revision = 101}, "");
        assert_string_equal(f->log, "");
        /* The next one adds a step, and compacts nothing. */
        tick(f, "get");
        answer_value(f, "100 0", 101, 110, "put 100 1 at 101");
        answer(f, (struct hfd_store_reply){.revision = 111}, "");
}

static void test_a_compaction_that_fails_is_logged(void **state) {
        static const struct {
                int error;
                bool logged;
        } cases[] = {{HF_E_GONE, false}, {HF_E_CANCELED, false}, {HF_E_UNAVAILABLE, true}};
        struct fixture *f = *state;

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                f->log[0] = '\0';
                tick(f, "get");
                answer_value(f, "15 9", 20, 100, i == 0 ? "" : "put 100 0 at 20");
                if (i == 0) {
                        tick(f, "get");
                        answer_value(f, "15 9", 20, 100, "put 100 0 at 20");
                }
                answer(f, (struct hfd_store_reply){.revision = 20}, "compact 15");
                answer_error(f, cases[i].error);
                assert_string_equal(f->log,
                                    cases[i].logged
                                            ? "4 compactor: cannot compact the store at the "
                                              "revision of " KEY
                                              ", will try again: the test says so\n"
                                            : "");
        }
}

static void test_a_key_that_cannot_be_read_is_tried_again(void **state) {
        struct fixture *f = *state;

        tick(f, "get");
        answer_error(f, HF_E_TIMEOUT);
        assert_in(f->log, "4 compactor: cannot read the compact key " KEY ", will try again: the "
                          "test says so\n");
        f->log[0] = '\0';
        tick(f, "get");
        answer_error(f, HF_E_CANCELED); /* the store is stopped */
        assert_string_equal(f->log, "");
        /* A key that was not read was not seen. */
        tick(f, "get");
        answer_value(f, "15", 20, 100, "");
}

static void test_a_key_that_cannot_be_written_compacts_nothing(void **state) {
        struct fixture *f = *state;

        see_twice(f, "15 9", "put 100 0 at 20");
        answer_error(f, HF_E_UNAVAILABLE);
        assert_in(f->log, "4 compactor: cannot write the compact key " KEY ", will try again: the "
                          "test says so\n");
        tick(f, "get");
        answer_value(f, "15 9", 20, 100, "put 100 0 at 20");
        answer_error(f, HF_E_CONFLICT);
}

/* A value that another instance has written counts as seen. */
static void test_a_conflict_shows_the_key(void **state) {
        struct fixture *f = *state;
        struct hfd_kv kv = {.key = KEY, .mod_revision = 50};

        see_twice(f, "15", "put 15 1 at 20");
        answer(f,
               (struct hfd_store_reply){.error = HF_E_CONFLICT,
                                        .revision = 100,
                                        .kvs = &kv,
                                        .n_kvs = 1},
               "");
        assert_string_equal(f->log, "");
        tick(f, "get");
        answer_value(f, "15 1", 50, 100, "put 15 2 at 50");
        answer(f, (struct hfd_store_reply){.error = HF_E_CONFLICT, .revision = 100}, "");
        tick(f, "get");
        answer(f, (struct hfd_store_reply){.revision = 100}, "put 100 0 at 0");
        answer(f, (struct hfd_store_reply){.revision = 101}, "");
}

static void test_a_store_that_refuses_an_operation_is_asked_again(void **state) {
        struct fixture *f = *state;

        f->refuses = HF_E_CLOSED;
        tick(f, "");
        f->refuses = 0;
        tick(f, "get");
        f->refuses = HF_E_CLOSED;
        answer(f, (struct hfd_store_reply){.revision = 100}, "");
        f->refuses = 0;
        tick(f, "get");
        answer_value(f, "15 9", 20, 100, "");
        tick(f, "get");
        answer_value(f, "15 9", 20, 100, "put 100 0 at 20");
        f->refuses = HF_E_CLOSED;
        answer(f, (struct hfd_store_reply){.revision = 101}, "");
        f->refuses = 0;
        tick(f, "get");
        answer_error(f, HF_E_CANCELED);
}

static void test_a_value_that_is_not_a_record_counts_as_none(void **state) {
        static const struct {
                const char *value, *operation;
        } cases[] = {
                {"100 3", "put 100 4 at 20"}, /* the store is just there */
                {"101 3", "put 100 0 at 20"},
                {"15 9x", "put 100 0 at 20"},
                {"99999999999999999999", "put 100 0 at 20"},
                {"0000000000000000000000000000000000015 3", "put 15 4 at 20"},
                {"00000000000000000000000000000000000015 3", "put 100 0 at 20"}, /* too long */
        };
        struct fixture *f = *state;

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                hfd_compactor_free(f->compactor);
                assert_int_equal(hfd_compactor_new(&f->host, &f->store, PREFIX, INTERVAL,
                                                   &f->compactor),
                                 0);
                see_twice(f, cases[i].value, cases[i].operation);
                answer_error(f, HF_E_CANCELED);
        }
}

static void test_a_freed_compactor_starts_nothing_more(void **state) {
        struct fixture *f = *state;

        size_t live = failing_memory_n_live() - 1; /* without the compactor */
        tick(f, "get");
        f->compactor = hfd_compactor_free(f->compactor);
        answer(f, (struct hfd_store_reply){.revision = 100}, "");
        assert_int_equal(hfd_compactor_new(&f->host, &f->store, PREFIX, INTERVAL, &f->compactor),
                         0);
        see_twice(f, "15 9", "put 100 0 at 20");
        f->compactor = hfd_compactor_free(f->compactor);
        answer(f, (struct hfd_store_reply){.revision = 101}, "");
        assert_string_equal(f->log, "");
        assert_int_equal(failing_memory_n_live(), live);
}

static void test_a_shortage_of_memory_is_over_at_the_next_tick(void **state) {
        struct fixture *f = *state;

        tick(f, "get");
        failing_memory_arm(0);
        answer(f, (struct hfd_store_reply){.revision = 100}, "");
        failing_memory_disarm();
        assert_true(failing_memory_hit());
        tick(f, "get");
        answer(f, (struct hfd_store_reply){.revision = 100}, "put 100 0 at 0");
        answer(f, (struct hfd_store_reply){.revision = 101}, "");
        hfd_compactor_free(f->compactor);
        f->compactor = NULL;
        failing_memory_arm(0);
        assert_int_equal(hfd_compactor_new(&f->host, &f->store, PREFIX, INTERVAL, &f->compactor),
                         -ENOMEM);
        failing_memory_disarm();
        assert_null(f->compactor);
}

static void test_the_key_has_the_longest_prefix_that_fits(void **state) {
        struct fixture *f = *state;
        struct hfd_compactor *compactor = NULL;
        char prefix[HFD_KEY_MAX];
        size_t longest = HFD_KEY_MAX - sizeof SUFFIX;

        memset(prefix, 'p', sizeof prefix);
        prefix[longest] = '\0';
        assert_int_equal(hfd_compactor_new(&f->host, &f->store, prefix, INTERVAL, &compactor), 0);
        hfd_compactor_free(compactor);
        prefix[longest] = 'p';
        prefix[longest + 1] = '\0';
        assert_int_equal(hfd_compactor_new(&f->host, &f->store, prefix, INTERVAL, &compactor),
                         HF_E_TOO_LARGE);
}

int main(void) {
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        const struct CMUnitTest cases[] = {
                CASE(test_an_attempt_reads_then_writes_then_compacts),
                CASE(test_a_compaction_that_fails_is_logged),
                CASE(test_a_key_that_cannot_be_read_is_tried_again),
                CASE(test_a_key_that_cannot_be_written_compacts_nothing),
                CASE(test_a_conflict_shows_the_key),
                CASE(test_a_store_that_refuses_an_operation_is_asked_again),
                CASE(test_a_value_that_is_not_a_record_counts_as_none),
                CASE(test_a_freed_compactor_starts_nothing_more),
                CASE(test_a_shortage_of_memory_is_over_at_the_next_tick),
                CASE(test_the_key_has_the_longest_prefix_that_fits),
        };

        return cmocka_run_group_tests(cases, NULL, NULL);
}
