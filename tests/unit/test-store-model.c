/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each backend against a simple model of a store: a list of all versions. A fixed sequence of
 * random writes is made in both; then lists at each revision, watches from each, and what remains
 * after compactions must be the same.
 */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <holdfast/error.h>

#include "base/buf.h"
#include "store_fixture.h"
#include "watch_recorder.h"

#define N_WRITES 60
/* Sorted. Most writes are of the first keys, so that these have many versions. */
static const char *const names[] = {"a", "a/b", "aa", "b", "b/c", "d"};
#define N_KEYS (sizeof names / sizeof names[0])

struct version {
        size_t key;
        uint64_t revision, created;
        char value[16]; /* "" = a deletion */
};

static struct version versions[2 * N_WRITES];
static size_t n_versions;
static uint64_t first_revision, last_revision; /* of the writes */
static uint32_t seed;
static struct store_fixture *f;

static size_t random_below(size_t n) {
        seed = seed * 1664525 + 1013904223;
        return (seed >> 8) % n;
}

static const char *key_of(size_t key) { return store_fixture_key(f, names[key]); }

/* The version of the key at a revision; NULL = it does not exist then. */
static const struct version *at(size_t key, uint64_t revision) {
        const struct version *found = NULL;

        for (size_t i = 0; i < n_versions && versions[i].revision <= revision; i++)
                if (versions[i].key == key)
                        found = &versions[i];
        return found && *found->value ? found : NULL;
}

static void expect_kv(const struct store_reply *reply, size_t i, const struct version *version,
                      bool keys_only) {
        assert_true(i < reply->n_kvs);
        assert_string_equal(reply->kvs[i].key, key_of(version->key));
        assert_int_equal(reply->kvs[i].mod_revision, version->revision);
        assert_int_equal(reply->kvs[i].create_revision, version->created);
        if (keys_only)
                assert_true(!reply->kvs[i].value || reply->kvs[i].value->n == 0);
        else
                assert_string_equal(store_reply_value(reply, i), version->value);
}

/* ---- writes ---- */

static void add_version(size_t key, uint64_t revision, const char *value) {
        const struct version *before = at(key, revision);
        struct version *version = &versions[n_versions];

        if (!before && !*value)
                return;
        *version = (struct version){.key = key, .revision = revision, .created = 0};
        (void)snprintf(version->value, sizeof version->value, "%s", value);
        if (*value)
                version->created = before ? before->created : revision;
        n_versions++;
}

/* One or two random ops, perhaps with a compare, which holds or does not. */
static void write_at_random(size_t number) {
        size_t keys[2] = {random_below(3) ? random_below(2) : random_below(N_KEYS), 0};
        size_t n_ops = 1 + (random_below(3) == 0), way = random_below(4);
        char text[2][16] = {""};
        const char *gets[] = {key_of(0), key_of(2), key_of(5)};
        struct hfd_op ops[2];
        struct store_reply reply;

        keys[1] = (keys[0] + 1 + random_below(N_KEYS - 1)) % N_KEYS;
        for (size_t i = 0; i < n_ops; i++) {
                if (random_below(4) != 0)
                        (void)snprintf(text[i], sizeof text[i], "%zu-%zu", number, i);
                ops[i] = (struct hfd_op){.kind = *text[i] ? HFD_PUT : HFD_DELETE,
                                         .key = key_of(keys[i])};
                ops[i].value = *text[i] ? hf__buf_copy(text[i], strlen(text[i])) : NULL;
        }
        const struct version *current = at(keys[0], last_revision);
        uint64_t wanted = (current ? current->revision : 0) + (way == 0);
        const struct hfd_compare compare = {.kind = HFD_MOD_EQUALS,
                                            .key = key_of(keys[0]),
                                            .revision = wanted};
        const struct hfd_txn txn = {.compares = &compare,
                                    .n_compares = way < 2,
                                    .ops = ops,
                                    .n_ops = n_ops,
                                    .get_on_failure = gets,
                                    .n_get_on_failure = 3};
        int r = store_client_txn(f->store, &txn, &reply);
        for (size_t i = 0; i < n_ops; i++)
                hf__buf_unref(ops[i].value);
        if (way == 0) {
                static const size_t asked[] = {0, 2, 5};
                size_t n = 0;
                assert_int_equal(r, HF_E_CONFLICT);
                for (size_t i = 0; i < 3; i++)
                        if (at(asked[i], last_revision))
                                expect_kv(&reply, n++, at(asked[i], last_revision), false);
                assert_int_equal(reply.n_kvs, n);
                assert_int_equal(reply.revision, last_revision);
        } else {
                size_t n_before = n_versions;
                assert_int_equal(r, 0);
                for (size_t i = 0; i < n_ops; i++)
                        add_version(keys[i], last_revision + 1, text[i]);
                last_revision += n_versions > n_before;
                assert_int_equal(reply.revision, last_revision);
                assert_int_equal(reply.n_kvs, 0);
        }
        store_reply_deinit(&reply);
}

static void write_all(void **state, uint32_t from) {
        f = *state;
        seed = from;
        n_versions = 0;
        last_revision = store_client_put(f->store, key_of(0), "first");
        first_revision = last_revision;
        add_version(0, first_revision, "first");
        for (size_t i = 0; i < N_WRITES; i++)
                write_at_random(i);
        assert_true(n_versions > N_WRITES / 2);
}

/* ---- reads ---- */

static void expect_list(const char *prefix, const char *start, uint64_t revision, size_t limit,
                        bool keys_only) {
        struct store_reply reply;
        bool more = false;
        size_t n = 0;

        assert_int_equal(store_client_list(f->store, store_fixture_key(f, prefix),
                                           start ? store_fixture_key(f, start) : NULL, revision,
                                           limit, keys_only, &reply),
                         0);
        for (size_t key = 0; key < N_KEYS; key++) {
                const struct version *version = at(key, revision ? revision : last_revision);
                if (!version || strncmp(names[key], prefix, strlen(prefix)) != 0 ||
                    (start && strcmp(names[key], start) < 0))
                        continue;
                more = limit > 0 && n == limit;
                if (more)
                        break;
                expect_kv(&reply, n++, version, keys_only);
        }
        assert_int_equal(reply.n_kvs, n);
        assert_int_equal(reply.more, more);
        assert_int_equal(reply.revision, last_revision);
        store_reply_deinit(&reply);
}

static void expect_lists_at(uint64_t revision) {
        static const char *const prefixes[] = {"", "a", "a/", "b"};
        static const char *const starts[] = {NULL, "a", "a/a", "aa", "b/c", "e"};

        expect_list("", NULL, revision, 0, false);
        expect_list("", NULL, revision, 1 + random_below(N_KEYS + 1), true);
        expect_list(prefixes[random_below(4)], starts[random_below(6)], revision, random_below(4),
                    random_below(2));
}

static void expect_gets(void) {
        struct store_reply reply;

        for (size_t key = 0; key < N_KEYS; key++) {
                const struct version *version = at(key, last_revision);
                assert_int_equal(store_client_get(f->store, key_of(key), &reply), 0);
                assert_int_equal(reply.n_kvs, version != NULL);
                if (version)
                        expect_kv(&reply, 0, version, false);
                assert_int_equal(reply.revision, last_revision);
                store_reply_deinit(&reply);
        }
}

static void test_lists_at_each_revision_are_those_of_the_model(void **state) {
        for (uint32_t from = 1; from <= 2; from++) {
                write_all(state, from);
                expect_gets();
                expect_lists_at(0);
                for (uint64_t r = first_revision; r <= last_revision; r++)
                        expect_lists_at(r);
                for (size_t key = 0; key < N_KEYS; key++)
                        (void)store_client_delete(f->store, key_of(key));
        }
}

/* ---- watches ---- */

/* begin, end: of the keys' names. */
static void expect_events(uint64_t from, size_t begin, size_t end) {
        static struct watch_recorder recorder;
        size_t n = 0;

        assert_int_equal(watch_recorder_start(&recorder, f->store, key_of(begin), key_of(end),
                                              from),
                         0);
        for (size_t i = 0; i < n_versions; i++)
                n += versions[i].revision >= from && versions[i].key >= begin &&
                     versions[i].key < end;
        watch_recorder_await(&recorder, n);
        assert_int_equal(recorder.n, n);
        n = 0;
        for (size_t i = 0; i < n_versions; i++) {
                const struct version *version = &versions[i];
                const struct watch_recorder_event *event = &recorder.events[n];
                if (version->revision < from || version->key < begin || version->key >= end)
                        continue;
                assert_int_equal(event->revision, version->revision);
                assert_int_equal(event->mod_revision, version->revision);
                assert_string_equal(event->key, key_of(version->key));
                assert_int_equal(event->type, *version->value ? HFD_WATCH_PUT : HFD_WATCH_DELETE);
                assert_int_equal(event->create_revision, version->created);
                if (*version->value) {
                        assert_int_equal(event->value->n, strlen(version->value));
                        assert_memory_equal(event->value->data, version->value, event->value->n);
                }
                if (n > 0 && event[-1].revision == event->revision)
                        assert_int_equal(event[-1].batch, event->batch);
                n++;
        }
        watch_recorder_stop(&recorder);
}

static void test_watches_see_the_versions_of_the_model(void **state) {
        write_all(state, 3);
        for (uint64_t r = first_revision; r <= last_revision; r += 9)
                expect_events(r, 0, N_KEYS - 1);
        expect_events(first_revision, 1, 3);
        expect_events(first_revision, 3, 5);
        expect_events(last_revision, 0, N_KEYS - 1);
        expect_events(last_revision + 1, 0, N_KEYS - 1);
}

/* ---- compactions ---- */

static void expect_gone(uint64_t revision) {
        static struct watch_recorder recorder;

        assert_int_equal(store_client_list(f->store, f->prefix, NULL, revision, 0, false, NULL),
                         HF_E_GONE);
        assert_int_equal(watch_recorder_start(&recorder, f->store, key_of(0), key_of(N_KEYS - 1),
                                              revision),
                         0);
        assert_int_equal(watch_recorder_await_end(&recorder), HF_E_GONE);
        assert_int_equal(recorder.n, 0);
        watch_recorder_stop(&recorder);
}

static void test_a_compaction_leaves_the_later_versions_of_the_model(void **state) {
        write_all(state, 4);
        uint64_t n = last_revision - first_revision;
        const uint64_t compacted[] = {first_revision + 2, first_revision + n / 3,
                                      first_revision + n / 3 + 1, last_revision - 1, last_revision};

        for (size_t i = 0; i < sizeof compacted / sizeof compacted[0]; i++) {
                assert_int_equal(store_client_compact(f->store, compacted[i]), 0);
                assert_int_equal(store_client_compact(f->store, compacted[i]), HF_E_GONE);
                expect_gone(compacted[i] - 1);
                expect_gone(first_revision);
                for (uint64_t r = compacted[i]; r <= last_revision; r += 1 + random_below(4))
                        expect_lists_at(r);
                /* etcd may have removed the deletions of the compacted revision itself. */
                expect_events(compacted[i] + 1, 0, N_KEYS - 1);
                expect_gets();
                expect_lists_at(0);
        }
        assert_int_equal(store_client_list(f->store, f->prefix, NULL, last_revision + 1, 0, false,
                                           NULL),
                         HF_E_INVALID);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                STORE_TEST(test_lists_at_each_revision_are_those_of_the_model),
                STORE_TEST(test_watches_see_the_versions_of_the_model),
                STORE_TEST(test_a_compaction_leaves_the_later_versions_of_the_model),
        };
        return store_fixture_run(tests, sizeof tests / sizeof tests[0]);
}
