/* SPDX-License-Identifier: Apache-2.0 */
/* The effects of events of the store's watch: on objects, on watches and on observers. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "patience.h"
#include "scripted_cacher.h"
#include "scripted_watch.h"
#include "server/cacher/watch/snapshot.h"
#include "server/cacher/watch/watcher_private.h"
#include "server/cacher/watch/watchers.h"
#include "server/resources/rows/resource_table.h"
#include "time_units.h"

/* The store would say that it has encrypted the value. */
#define SEALED     "k8s:enc:aesgcm:v1:key1:x"
#define SEALED_WHY "identity transformer tried to read encrypted data"
#define WHY(path)                                                                                  \
        "Internal error occurred: unable to transform key \"/registry/configmaps/" path            \
        "\": " SEALED_WHY

static const struct hfd_resource *configmaps(void) {
        return hfd_resource_find("", "v1", "configmaps");
}

static void put(const char *name, uint64_t revision) {
        scripted_store_event(&scripted.store, scripted_cacher_key(name), SCRIPTED_OBJECT("x"),
                             revision);
}

static void delete_object(const char *name, uint64_t revision) {
        scripted_store_event(&scripted.store, scripted_cacher_key(name), NULL, revision);
}

/* Fills the cache, and begins a watch of all ConfigMaps. */
static void begin(struct scripted_watch *watch) {
        scripted_cacher_fill();
        scripted_watch_begin(watch, (struct scripted_watch_spec){.from_now = true});
}

/* ---- objects ---- */

static void test_each_event_changes_the_object(void **state) {
        struct scripted_watch watch;

        begin(&watch);
        put("c", 11);
        assert_int_equal(scripted_cacher_seen("ns/c"), 11);
        put("c", 12);
        assert_int_equal(scripted_cacher_seen("ns/c"), 12);
        delete_object("c", 13);
        assert_int_equal(scripted_cacher_seen("ns/c"), 0);
        delete_object("c", 14); /* the object does not exist any more */
        assert_int_equal(hfd_cacher_revision(scripted.cacher), 14);
        put("c", 15);
        scripted_watch_expect(&watch, "+c@11 ~c@12 -c@13 +c@15 ");
        assert_int_equal(scripted_cacher_seen("ns/a"), 5);
        scripted_watch_done(&watch);
        scripted_watch_expect(&watch, "END:canceled ");
}

/* Progress notifications, and keys that are not those of objects, only move the revision. */
static void test_other_events_move_the_revision(void **state) {
        struct scripted_watch watch;

        begin(&watch);
        hand_clock_move(SEC);
        scripted_store_event(&scripted.store, NULL, NULL, 15);
        assert_int_equal(hfd_cacher_revision(scripted.cacher), 15);
        assert_true(hfd_cacher_last_store_contact(scripted.cacher) == hand_clock_now());
        scripted_store_event(&scripted.store, "/registry/unknown/x", "y", 16);
        scripted_store_event(&scripted.store, "/registry.holdfast/progress", "", 17);
        assert_int_equal(hfd_cacher_revision(scripted.cacher), 17);
        scripted_store_event(&scripted.store, NULL, NULL, 16); /* it never goes back */
        assert_int_equal(hfd_cacher_revision(scripted.cacher), 17);
        scripted_watch_expect(&watch, "");
        scripted_watch_done(&watch);
}

/* A call may have several revisions, and several events of each. */
static void test_a_call_with_several_revisions(void **state) {
        static const char text[] = SCRIPTED_OBJECT("x");
        struct hf__buf *value = hf__buf_copy(text, strlen(text));
        struct hfd_watch_event events[5] = {{.kv.key = "/registry/configmaps/ns/c"},
                                            {.kv.key = "/registry/configmaps/ns/d"},
                                            {.kv.key = "/registry/secrets/ns/s"},
                                            {.kv.key = "/registry/configmaps/ns/c"},
                                            {.kv.key = "/registry/configmaps/ns/e"}};
        static const uint64_t revisions[] = {11, 11, 12, 13, 13};
        struct scripted_watch watch, secrets;

        begin(&watch);
        scripted_watch_begin(&secrets,
                             (struct scripted_watch_spec){.plural = "secrets", .from_now = true});
        for (size_t i = 0; i < 5; i++) {
                events[i].type = i == 3 ? HFD_WATCH_DELETE : HFD_WATCH_PUT;
                events[i].kv.value = i == 3 ? NULL : value;
                events[i].kv.mod_revision = events[i].revision = revisions[i];
        }
        scripted_store_events(&scripted.store, events, 5);
        hf__buf_unref(value);
        scripted_watch_expect(&watch, "+c@11 +d@11 -c@13 +e@13 ");
        scripted_watch_expect(&secrets, "+s@12 ");
        assert_int_equal(hfd_cacher_revision(scripted.cacher), 13);
        assert_int_equal(atomic_load(&scripted.n_observed), 2); /* the filling, and this */
        assert_int_equal(atomic_load(&scripted.observed), SCRIPTED_CONFIGMAPS | SCRIPTED_SECRETS);
        scripted_watch_done(&secrets);
        scripted_watch_done(&watch);
}

/* Several watches of a change share its object. All conditions of a watch hold at the same time. */
static void test_each_watch_gets_what_it_selects(void **state) {
        static const struct {
                struct scripted_watch_spec spec;
                const char *expected;
        } cases[] = {
                {{0}, "+c@11 +d@12 +c@13 "},
                {{.ns = "ns"}, "+c@11 +d@12 "},
                {{.ns = "n"}, ""},
                {{.ns = "ns", .name = "c"}, "+c@11 "},
                {{.labels = "k=v"}, "+d@12 "},
                {{.fields = "metadata.name=c"}, "+c@11 +c@13 "},
                {{.fields = "metadata.namespace=m"}, "+c@13 "},
                {{.fields = "metadata.name=c,metadata.namespace=m"}, "+c@13 "},
                {{.ns = "ns", .fields = "metadata.name!=c"}, "+d@12 "},
                {{.labels = "k=v", .fields = "metadata.name=c"}, ""},
                {{.plural = "secrets"}, ""},
        };
        enum { N = sizeof cases / sizeof cases[0] };
        struct scripted_watch watches[N];

        scripted_cacher_fill();
        for (size_t i = 0; i < N; i++) {
                struct scripted_watch_spec spec = cases[i].spec;
                spec.from_now = true;
                scripted_watch_begin(&watches[i], spec);
        }
        put("c", 11);
        scripted_store_event(&scripted.store, scripted_cacher_key("d"),
                             "{\"metadata\":{\"name\":\"d\",\"labels\":{\"k\":\"v\"}}}", 12);
        scripted_store_event(&scripted.store, "/registry/configmaps/m/c", SCRIPTED_OBJECT("c"), 13);
        for (size_t i = 0; i < N; i++) {
                scripted_watch_expect(&watches[i], cases[i].expected);
                scripted_watch_done(&watches[i]);
        }
}

/* The history ends after 75 seconds, and nothing of it stays in memory (the tear-down looks). */
static void test_an_old_change_is_forgotten(void **state) {
        struct scripted_watch watch;

        scripted_cacher_fill();
        put("a", 11);
        scripted_watch_begin(&watch, (struct scripted_watch_spec){.revision = 10});
        scripted_watch_expect(&watch, "~a@11 ");
        scripted_watch_done(&watch);
        scripted_cacher_move(79 * SEC);
        struct scripted_request probe = scripted_store_next(&scripted.store, SCRIPTED_REVISION);
        scripted_reply_revision(&probe, 11);
        scripted_cacher_move(SEC); /* nothing else is due now */
        assert_int_equal(scripted_store_n_waiting(&scripted.store), 0);
        scripted_watch_expect_refused((struct scripted_watch_spec){.revision = 10}, 410,
                                      "The resourceVersion for the provided watch is too old.");
        assert_int_equal(scripted_cacher_seen("ns/a"), 11);
}

/* A client may have its revision from a history that was replaced, so the store is asked. */
static void test_a_watch_from_a_later_revision_is_compared_with_the_store(void **state) {
        struct scripted_watch watch;

        scripted_cacher_fill();
        scripted_watch_begin(&watch, (struct scripted_watch_spec){.revision = 10});
        assert_int_equal(scripted_store_n_waiting(&scripted.store), 0);
        scripted_watch_done(&watch);
        scripted_watch_begin(&watch, (struct scripted_watch_spec){.revision = 11});
        struct scripted_request request = scripted_store_next(&scripted.store, SCRIPTED_REVISION);
        scripted_reply_revision(&request, 11);
        scripted_watch_expect(&watch, ""); /* only the cache is late */
        scripted_watch_done(&watch);
        scripted_watch_begin(&watch, (struct scripted_watch_spec){.revision = 12});
        request = scripted_store_next(&scripted.store, SCRIPTED_REVISION);
        scripted_reply_revision(&request, 11);
        scripted_watch_expect(&watch, "END:410 ");
        scripted_watch_done(&watch);
}

/* The timer sleeps for longer when the watch begins. */
static void test_a_short_watch_ends_in_time(void **state) {
        struct scripted_watch watch;

        scripted_cacher_fill();
        hand_clock_await_waiter();
        scripted_watch_begin(&watch,
                             (struct scripted_watch_spec){.from_now = true, .timeout_s = 3});
        scripted_cacher_move(3 * SEC - 1);
        scripted_watch_expect(&watch, "");
        scripted_cacher_move(1);
        scripted_watch_await(&watch);
        scripted_watch_expect(&watch, "END:0 ");
        scripted_watch_done(&watch);
}

static void test_the_watches_of_an_event_send_the_same_bytes(void **state) {
        struct scripted_watch watches[2];

        scripted_cacher_fill();
        for (size_t i = 0; i < 2; i++)
                scripted_watch_begin(&watches[i],
                                     (struct scripted_watch_spec){.from_now = true,
                                                                  .keeps_frame = true});
        put("c", 11);
        assert_non_null(watches[0].frame);
        assert_ptr_equal(watches[0].frame, watches[1].frame);
        for (size_t i = 0; i < 2; i++)
                scripted_watch_done(&watches[i]);
}

/* ---- observers ---- */

static void test_observers_are_called_after_events_of_their_objects(void **state) {
        scripted_cacher_fill();
        put("c", 11);
        assert_int_equal(atomic_load(&scripted.n_observed), 2);
        assert_int_equal(atomic_load(&scripted.observed), SCRIPTED_CONFIGMAPS);
        scripted_store_event(&scripted.store, "/registry/secrets/ns/s", NULL, 12);
        assert_int_equal(atomic_load(&scripted.n_observed), 3);
        assert_int_equal(atomic_load(&scripted.observed), SCRIPTED_SECRETS);
        scripted_store_event(&scripted.store, "/registry/services/specs/ns/s", SCRIPTED_OBJECT("s"),
                             13);
        scripted_store_event(&scripted.store, "/registry/unknown/x", "y", 14);
        scripted_store_event(&scripted.store, NULL, NULL, 15);
        assert_int_equal(atomic_load(&scripted.n_observed), 3);
}

static void test_the_mark_of_a_copy_is_noticed(void **state) {
        scripted_cacher_fill();
        scripted_store_event(&scripted.store, "/registry.holdfast/copying2", "x", 11);
        scripted_store_event(&scripted.store, "/registry.holdfast/copying", NULL, 12);
        assert_int_equal(atomic_load(&scripted.n_copies), 0);
        scripted_store_event(&scripted.store, "/registry.holdfast/copying", "x", 13);
        assert_int_equal(atomic_load(&scripted.n_copies), 1);
}

/* The informers of the new leader, in this process, asked for bookmarks and wait for one. */
static void test_a_term_of_this_process_is_a_bookmark(void **state) {
        static const char term[] = "/registry.holdfast/terms/kube-system/l";
        struct scripted_watch watches[4];

        scripted_cacher_fill();
        for (int i = 0; i < 4; i++)
                scripted_watch_begin(&watches[i],
                                     (struct scripted_watch_spec){.from_now = i != 3,
                                                                  .revision = i == 3 ? 30 : 0,
                                                                  .bookmarks = i != 1,
                                                                  .in_process = i != 2});
        struct scripted_request ahead = scripted_store_next(&scripted.store, SCRIPTED_REVISION);
        scripted_reply_revision(&ahead, 30);
        scripted_store_event(&scripted.store, term, "", 11);
        scripted_store_event(&scripted.store, term, "\nreleased", 12);
        scripted_store_event(&scripted.store, term, NULL, 13);
        scripted_store_event(&scripted.store, "/registry.holdfast/termz/kube-system/l", "x", 14);
        for (int i = 0; i < 4; i++)
                scripted_watch_expect(&watches[i], "");
        /* Others' Leases, such as those of nodes, are many. */
        scripted_store_event(&scripted.store, term, "holder-2\n", 15);
        scripted_store_event(&scripted.store, term, "hold\n", 16);
        for (int i = 0; i < 4; i++)
                scripted_watch_expect(&watches[i], "");
        scripted_store_event(&scripted.store, term, "holder\n-", 17);
        scripted_watch_expect(&watches[0], "b@17 ");
        scripted_watch_expect(&watches[1], "");
        scripted_watch_expect(&watches[2], "");
        scripted_watch_expect(&watches[3], "b@30 "); /* never below what it has seen */
        for (int i = 0; i < 4; i++)
                scripted_watch_done(&watches[i]);
}

/* So that a term need not look at the others. */
static void test_the_informers_of_this_process_come_first(void **state) {
        struct hfd_watcher *w;
        struct scripted_watch watches[6];
        size_t n = 0;

        scripted_cacher_fill();
        for (size_t i = 0; i < 6; i++)
                scripted_watch_begin(&watches[i],
                                     (struct scripted_watch_spec){.from_now = true,
                                                                  .bookmarks = true,
                                                                  .in_process = i % 2 != 0});
        for (w = scripted.cacher->watchers->list[hfd_resource_index(configmaps())]; w;
             w = w->in[HFD_WATCHER_BY_OBJECTS].next)
                assert_true(w->told_of_terms == (n++ < 3));
        assert_int_equal(n, 6);
        for (size_t i = 0; i < 6; i++) {
                scripted_watch_done(&watches[i]);
                scripted_watch_expect(&watches[i], "END:canceled ");
        }
}

static size_t n_narrow_of(size_t resource) {
        const struct hfd_watcher *w = scripted.cacher->watchers->narrow_of[resource];
        size_t n = 0;

        for (; w; w = w->in[HFD_WATCHER_BY_KIND].next, n++)
                assert_int_equal(hfd_resource_index(w->delivery.resource), resource);
        return n;
}

/* Watches of a namespace or a name are in lists of their own, so that a change visits few others.
 */
static void test_narrow_watches_get_the_changes_of_their_objects(void **state) {
        static const struct {
                const char *ns, *name, *text, *fields;
        } cases[] = {{"ns", "", "~a@11 +c@12 "},
                     {"ns", "a", "~a@11 "},
                     {"", "c", "+c@12 "},
                     {"n", "", ""},
                     {"ns", "b", ""},
                     {"", "ns", ""},
                     {"", "", "~a@11 +c@12 ", "metadata.namespace=ns"},
                     {"", "", "~a@11 ", "metadata.namespace=ns,metadata.name=a"},
                     {"", "", "", "metadata.namespace=n"},
                     {"", "", "~a@11 +c@12 "}};
        enum { N = sizeof cases / sizeof cases[0] };
        struct scripted_watch watches[N], of_secrets;
        struct hfd_watchers *watchers = scripted.cacher->watchers;
        size_t index = hfd_resource_index(configmaps());

        scripted_cacher_fill();
        scripted_watch_begin(&of_secrets, (struct scripted_watch_spec){.plural = "secrets",
                                                                       .ns = "ns",
                                                                       .name = "a",
                                                                       .from_now = true});
        for (size_t i = 0; i < N; i++)
                scripted_watch_begin(&watches[i],
                                     (struct scripted_watch_spec){.ns = cases[i].ns,
                                                                  .name = cases[i].name,
                                                                  .fields = cases[i].fields,
                                                                  .from_now = true});
        assert_ptr_equal(watchers->list[index], watches[N - 1].watcher);
        assert_null(watchers->list[index]->in[HFD_WATCHER_BY_OBJECTS].next);
        assert_int_equal(n_narrow_of(index), N - 1);
        put("a", 11);
        put("c", 12);
        for (size_t i = 0; i < N; i++)
                scripted_watch_expect(&watches[i], cases[i].text);
        scripted_store_event(&scripted.store, scripted_cacher_key("a"), SEALED, 13);
        for (size_t i = 0; i < N; i++) {
                scripted_watch_expect(&watches[i], "END:410 ");
                scripted_watch_done(&watches[i]);
        }
        assert_int_equal(n_narrow_of(index), 0);
        scripted_watch_expect(&of_secrets, "");
        scripted_watch_done(&of_secrets);
        scripted_watch_expect(&of_secrets, "END:canceled ");
}

/* The end of a kind costs what its own watches cost: it does without the lists that have the narrow
 * watches of all kinds. */
static void test_the_end_of_a_kind_visits_its_watches_only(void **state) {
        enum { N = 3 };
        static const char *const names[N] = {"a", "b", ""};
        struct scripted_watch watches[N], of_secrets;
        struct hfd_watchers *watchers = scripted.cacher->watchers;
        static struct hfd_watcher *all[HFD_NARROW_BUCKETS];
        pthread_mutex_t *mu = &scripted.cacher->mu;
        struct hfd_watcher *dirty = NULL;

        scripted_cacher_fill();
        scripted_watch_begin(&of_secrets, (struct scripted_watch_spec){.plural = "secrets",
                                                                       .ns = "ns",
                                                                       .name = "a",
                                                                       .from_now = true});
        for (size_t i = 0; i < N; i++)
                scripted_watch_begin(&watches[i], (struct scripted_watch_spec){.ns = "ns",
                                                                               .name = names[i],
                                                                               .from_now = true});
        pthread_mutex_lock(mu);
        memcpy(all, watchers->narrow, sizeof all);
        memset(watchers->narrow, 0, sizeof all);
        hfd_watchers_expire_resource_locked(scripted.cacher, hfd_resource_index(configmaps()),
                                            &dirty);
        memcpy(watchers->narrow, all, sizeof all);
        pthread_mutex_unlock(mu);
        hfd_watchers_deliver(dirty);
        for (size_t i = 0; i < N; i++) {
                scripted_watch_expect(&watches[i], "END:410 ");
                scripted_watch_done(&watches[i]);
        }
        scripted_watch_expect(&of_secrets, "");
        scripted_watch_done(&of_secrets);
        scripted_watch_expect(&of_secrets, "END:canceled ");
}

/* Of so many names, some have the list of their namespace for the list of their own watches. */
static void test_no_list_is_visited_twice(void **state) {
        struct scripted_watch watch;
        char name[32], key[64], text[64];

        scripted_cacher_fill();
        scripted_watch_begin(&watch, (struct scripted_watch_spec){.ns = "ns", .from_now = true});
        for (unsigned i = 11; i < 20000; i++) {
                (void)snprintf(name, sizeof name, "x%u", i);
                (void)snprintf(key, sizeof key, "/registry/configmaps/ns/%s", name);
                (void)snprintf(text, sizeof text, "+%s@%u ", name, i);
                scripted_store_event(&scripted.store, key, SCRIPTED_OBJECT("x"), i);
                scripted_watch_expect(&watch, text);
        }
        scripted_watch_done(&watch);
}

/* A watch of the past gets what its revision has missed, and then what comes. */
static void test_a_watch_goes_over_from_the_past_to_the_present(void **state) {
        struct scripted_watch watch;

        scripted_cacher_fill();
        put("a", 11);
        put("b", 12);
        put("c", 13);
        scripted_watch_begin(&watch, (struct scripted_watch_spec){.revision = 11});
        scripted_watch_expect(&watch, "~b@12 +c@13 ");
        put("a", 14);
        scripted_watch_expect(&watch, "~a@14 ");
        scripted_watch_done(&watch);
}

/* ---- values that are not valid objects ---- */

static void test_an_invalid_value_hides_the_object(void **state) {
        struct scripted_watch watch;

        begin(&watch);
        scripted_store_event(&scripted.store, scripted_cacher_key("a"), "nonsense", 11);
        assert_int_equal(scripted_cacher_seen("ns/a"), 0);
        assert_int_equal(scripted_cacher_n_logged("the value stored at /registry/configmaps/ns/a "
                                                  "is not a valid object; it is not served"),
                         1);
        scripted_store_event(&scripted.store, scripted_cacher_key("a"), "[]", 12);
        put("a", 13);
        assert_int_equal(scripted_cacher_seen("ns/a"), 13);
        scripted_store_event(&scripted.store, scripted_cacher_key("c"), "nonsense", 14);
        delete_object("c", 15);
        scripted_watch_expect(&watch, "-a@11 +a@13 ");
        scripted_watch_done(&watch);
}

static bool is_known_at(uint64_t revision) {
        struct hfd_snapshot snapshot;
        bool known = hfd_snapshot_take(scripted.cacher, configmaps(), revision, &snapshot);

        if (known)
                hfd_snapshot_done(&snapshot);
        return known;
}

/* No client may believe that the object was deleted: watches end, and no list is served from a
 * state without it. */
static void test_a_value_that_cannot_be_decrypted_ends_watches(void **state) {
        static const char why[] = WHY("ns/a");
        struct scripted_watch watch, secrets;

        begin(&watch);
        scripted_watch_begin(&secrets,
                             (struct scripted_watch_spec){.plural = "secrets", .from_now = true});
        put("b", 11);
        assert_true(is_known_at(10));
        scripted_store_event(&scripted.store, scripted_cacher_key("a"), SEALED, 12);
        scripted_watch_expect(&watch, "~b@11 END:410 ");
        scripted_watch_expect(&secrets, "");
        assert_int_equal(scripted_cacher_n_logged(SEALED_WHY "; reads that include it fail"), 1);
        assert_int_equal(scripted_cacher_seen("ns/a"), 0);
        assert_false(is_known_at(11));
        assert_true(is_known_at(12));
        scripted_watch_expect_refused((struct scripted_watch_spec){.from_now = true}, 500, why);
        scripted_watch_expect_refused((struct scripted_watch_spec){.ns = "ns", .name = "a"}, 500,
                                      why);
        scripted_watch_done(&watch);
        scripted_watch_begin(&watch,
                             (struct scripted_watch_spec){.ns = "ns", .name = "b", .revision = 12});
        scripted_watch_done(&watch);
        scripted_watch_begin(&watch, (struct scripted_watch_spec){.ns = "other"});
        put("a", 13); /* the value can be decrypted again */
        assert_int_equal(scripted_cacher_seen("ns/a"), 13);
        assert_false(is_known_at(12));
        assert_true(is_known_at(13));
        scripted_watch_done(&watch);
        scripted_watch_begin(&watch, (struct scripted_watch_spec){.from_now = true});
        scripted_watch_done(&watch);
        scripted_watch_done(&secrets);
}

/* Which value a watch cannot have, and that there is none in its range. */
static void test_a_watch_is_refused_for_a_value_in_its_range(void **state) {
        static const char a[] = WHY("ns/a"), c[] = WHY("ns/c"), last[] = WHY("z/sealed");
        static const struct {
                struct scripted_watch_spec spec;
                const char *why; /* NULL = the watch begins */
        } cases[] = {
                {{.from_now = true}, a},
                {{.ns = "ns", .name = "c"}, c},
                {{.ns = "ns", .name = "b"}, NULL},
                {{.ns = "ns", .fields = "metadata.name=c"}, c},
                {{.ns = "other"}, NULL},
                {{.ns = "ns", .fields = "metadata.name!=a"}, a}, /* it is not looked at */
                {{.plural = "secrets"}, NULL},
                {{.ns = "ns"}, a},
                {{.ns = "z"}, last},
        };

        scripted_cacher_fill();
        scripted_store_event(&scripted.store, scripted_cacher_key("a"), SEALED, 11);
        scripted_store_event(&scripted.store, scripted_cacher_key("c"), SEALED, 12);
        scripted_store_event(&scripted.store, "/registry/configmaps/z/invalid", "nonsense", 13);
        scripted_store_event(&scripted.store, "/registry/configmaps/z/sealed", SEALED, 14);
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                struct scripted_watch watch;

                if (cases[i].why) {
                        scripted_watch_expect_refused(cases[i].spec, 500, cases[i].why);
                        continue;
                }
                scripted_watch_begin(&watch, cases[i].spec);
                scripted_watch_done(&watch);
        }
}

static void test_ten_sealed_values_are_logged(void **state) {
        char name[8];

        scripted_cacher_fill();
        for (unsigned i = 0; i < 12; i++) {
                (void)snprintf(name, sizeof name, "s%u", i);
                scripted_store_event(&scripted.store, scripted_cacher_key(name), SEALED, 11 + i);
        }
        assert_int_equal(scripted_cacher_n_logged("unable to transform key"), 10);
        assert_int_equal(scripted_cacher_n_logged("further ones are not logged"), 1);
        assert_int_equal(scripted_cacher_n_logged("ns/s9\""), 1);
        scripted_store_end_watch(&scripted.store, HF_E_GONE, NULL);
        scripted_cacher_move(50 * MSEC);
        scripted_cacher_reply_epoch(NULL, 30);
        scripted_cacher_reply_list(30);
        scripted_cacher_await_watch(2);
        scripted_store_event(&scripted.store, scripted_cacher_key("s1"), SEALED, 31);
        assert_int_equal(scripted_cacher_n_logged("unable to transform key"), 11);
}

/* The store had no memory to decrypt the value. Everything is listed again, and watches begin anew.
 */
static void test_an_event_without_its_value_needs_a_list(void **state) {
        struct hfd_watch_event event = {.type = HFD_WATCH_PUT,
                                        .kv = {.key = "/registry/configmaps/ns/a",
                                               .mod_revision = 11,
                                               .create_revision = 5},
                                        .revision = 11};
        struct scripted_watch watch;

        begin(&watch);
        scripted_store_events(&scripted.store, &event, 1);
        assert_false(scripted_store_is_watched(&scripted.store));
        assert_int_equal(hfd_cacher_revision(scripted.cacher), 10);
        assert_int_equal(scripted_cacher_seen("ns/a"), 5);
        scripted_watch_expect(&watch, "");
        scripted_cacher_move(50 * MSEC);
        scripted_cacher_reply_epoch(NULL, 11);
        scripted_cacher_reply_list(11);
        scripted_cacher_await_watch(2);
        scripted_watch_await(&watch);
        scripted_watch_expect(&watch, "END:410 ");
        scripted_watch_done(&watch);
        scripted_watch_expect_refused((struct scripted_watch_spec){.revision = 10}, 410,
                                      "The resourceVersion for the provided watch is too old.");
}

/* The store has some seconds to say whether it knows the revision of a watch that is ahead of the
 * cache. Without an answer the watch goes on. */
static void test_a_watch_that_is_ahead_asks_the_store(void **state) {
        static const struct {
                int error;
                uint64_t revision;
                const char *text;
        } replies[] = {{0, 30, ""}, {HF_E_TIMEOUT, 0, ""}, {0, 29, "END:410 "}};

        scripted_cacher_fill();
        for (size_t i = 0; i < sizeof replies / sizeof replies[0]; i++) {
                struct scripted_watch watch;
                scripted_watch_begin(&watch, (struct scripted_watch_spec){.revision = 30});
                struct scripted_request asked =
                        scripted_store_next(&scripted.store, SCRIPTED_REVISION);
                assert_in_range(asked.deadline - hand_clock_now(), 5 * SEC, 30 * SEC);
                if (replies[i].error != 0)
                        scripted_reply_error(&asked, replies[i].error);
                else
                        scripted_reply_revision(&asked, replies[i].revision);
                if (replies[i].text[0])
                        scripted_watch_await(&watch);
                scripted_watch_expect(&watch, replies[i].text);
                scripted_watch_done(&watch);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                SCRIPTED_TEST(test_each_event_changes_the_object),
                SCRIPTED_TEST(test_other_events_move_the_revision),
                SCRIPTED_TEST(test_a_call_with_several_revisions),
                SCRIPTED_TEST(test_each_watch_gets_what_it_selects),
                SCRIPTED_TEST(test_an_old_change_is_forgotten),
                SCRIPTED_TEST(test_a_watch_from_a_later_revision_is_compared_with_the_store),
                SCRIPTED_TEST(test_a_short_watch_ends_in_time),
                SCRIPTED_TEST(test_the_watches_of_an_event_send_the_same_bytes),
                SCRIPTED_TEST(test_observers_are_called_after_events_of_their_objects),
                SCRIPTED_TEST(test_the_mark_of_a_copy_is_noticed),
                SCRIPTED_TEST(test_a_term_of_this_process_is_a_bookmark),
                SCRIPTED_TEST(test_the_informers_of_this_process_come_first),
                SCRIPTED_TEST(test_narrow_watches_get_the_changes_of_their_objects),
                SCRIPTED_TEST(test_the_end_of_a_kind_visits_its_watches_only),
                SCRIPTED_TEST(test_no_list_is_visited_twice),
                SCRIPTED_TEST(test_a_watch_goes_over_from_the_past_to_the_present),
                SCRIPTED_TEST(test_an_invalid_value_hides_the_object),
                SCRIPTED_TEST(test_a_value_that_cannot_be_decrypted_ends_watches),
                SCRIPTED_TEST(test_a_watch_is_refused_for_a_value_in_its_range),
                SCRIPTED_TEST(test_ten_sealed_values_are_logged),
                SCRIPTED_TEST(test_an_event_without_its_value_needs_a_list),
                SCRIPTED_TEST(test_a_watch_that_is_ahead_asks_the_store),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
