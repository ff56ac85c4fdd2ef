/* SPDX-License-Identifier: Apache-2.0 */
/* Custom resources: kinds follow their definitions, and objects their kinds. */
#undef NDEBUG
#include "api_fixture.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "client_watch.h"
#include "gadget_definition.h"
#include "patience.h"
#include "server/cacher/feed/kind_feed.h"
#include "server/cacher/sync/slot_forms.h"
#include "server/cacher/watch/snapshot.h"
#include "server/resources/custom/custom_table.h"
#include "server/resources/custom/custom_version_order.h"
#include "server/resources/custom/json_path.h"
#include "server/resources/custom/served_rows.h"
#include "server/resources/objects/object_key.h"
#include "server/resources/rows/resource_table.h"
#include "server/schema/schema.h"
#include "server/storage/store.h"
#include "store_client.h"

/* ---- definitions that are created, changed and deleted ---- */

static void put_definition(struct api_fixture *f, const char *text) {
        assert_true(store_client_put(f->store, CRD, text) > 0);
}

static int get(struct api_fixture *f, const char *name) {
        return api_fixture_get(f, gadgets, "default", name);
}

static bool has_text(struct api_fixture *f, const char *name, const char *text) {
        return get(f, name) == 0 && strcmp(api_fixture_text_at(f, "spec.text"), text) == 0;
}

static void test_objects_follow_their_definition(void **state) {
        struct api_fixture *f = *state;

        /* Another program stored this object, before the definition and with its members in another
         * order. */
        assert_true(store_client_put(f->store, GADGET "a",
                                     "{\"apiVersion\":\"example.com/v0\",\"kind\":\"Old\","
                                     "\"metadata\":{\"name\":\"a\",\"namespace\":\"default\"},"
                                     "\"spec\":{\"other\":1}}") > 0);
        assert_int_equal(get(f, "a"), HF_E_NOT_FOUND);
        put_definition(f, DEFINITION(VERSION("v1", "true", "first")));
        PATIENCE_AWAIT(has_text(f, "a", "first"));
        assert_string_equal(api_fixture_text_at(f, "apiVersion"), "example.com/v1");
        assert_string_equal(api_fixture_text_at(f, "kind"), "Gadget");
        assert_null(strstr(f->last.body, "other"));
        put_definition(f,
                       DEFINITION(VERSION("v1", "false", "x") "," VERSION("v2", "true", "second")));
        PATIENCE_AWAIT(has_text(f, "a", "second"));
        assert_string_equal(api_fixture_text_at(f, "apiVersion"), "example.com/v1");
        assert_true(store_client_delete(f->store, CRD) > 0);
        PATIENCE_AWAIT(get(f, "a") == HF_E_NOT_FOUND);
        put_definition(f, DEFINITION(VERSION("v1", "true", "third")));
        /* The defaults of earlier definitions have left no trace. */
        PATIENCE_AWAIT(has_text(f, "a", "third"));
}

static bool have_texts(struct api_fixture *f, unsigned n, const char *text) {
        char name[16];

        for (unsigned i = 0; i < n; i++) {
                (void)snprintf(name, sizeof name, "g%02u", i);
                if (!has_text(f, name, text))
                        return false;
        }
        return true;
}

/* More objects than are converted under one lock. */
static void test_many_objects_follow_their_definition(void **state) {
        struct api_fixture *f = *state;
        char key[128], text[200];

        for (unsigned i = 0; i < 70; i++) {
                (void)snprintf(key, sizeof key, GADGET "g%02u", i);
                (void)snprintf(text, sizeof text,
                               "{\"apiVersion\":\"example.com/"
                               "v1\",\"kind\":\"Gadget\",\"metadata\":{"
                               "\"name\":\"g%02u\",\"namespace\":\"default\"}}",
                               i);
                assert_true(store_client_put(f->store, key, text) > 0);
        }
        put_definition(f, DEFINITION(VERSION("v1", "true", "first")));
        PATIENCE_AWAIT(have_texts(f, 70, "first"));
        put_definition(f, DEFINITION(VERSION("v1", "true", "second")));
        PATIENCE_AWAIT(have_texts(f, 70, "second"));
}

static struct hfd_custom_kind *served(struct api_fixture *f) {
        struct hfd_custom_set *set = hfd_custom_table_set(f->table);
        struct hfd_custom_kind *kind = hfd_custom_set_find(set, "example.com", "gadgets");

        kind = kind ? hfd_custom_kind_ref(kind) : NULL;
        hfd_custom_set_unref(set);
        return kind;
}

static bool has_kind(struct api_fixture *f, const char *name) {
        struct hfd_custom_set *set = hfd_custom_table_set(f->table);
        bool found = false;

        for (size_t i = 0; set && i < set->n; i++)
                found = found || strcmp(set->kinds[i]->storage->row.kind, name) == 0;
        hfd_custom_set_unref(set);
        return found;
}

static size_t n_served(struct api_fixture *f) {
        struct hfd_custom_set *set = hfd_custom_table_set(f->table);
        size_t n = set ? set->n : 0;

        hfd_custom_set_unref(set);
        return n;
}

/* Puts a definition of gadgets in which a text is replaced, under another name. */
static void put_other(struct api_fixture *f, const char *key, const char *from, const char *to) {
        const char *text = DEFINITION(VERSION("v1", "true", "first")), *at = strstr(text, from);
        char changed[2000];

        assert_non_null(at);
        (void)snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - text), text, to,
                       at + strlen(from));
        assert_true(store_client_put(f->store, key, changed) > 0);
}

/* If the kind were replaced, its watches would end whenever any definition changes. */
static void test_a_kind_stays_while_its_definition_stays(void **state) {
        struct api_fixture *f = *state;

        put_definition(f, DEFINITION(VERSION("v1", "true", "first")));
        PATIENCE_AWAIT(n_served(f) == 1 && hfd_kind_feed_synced(f->feed));
        struct hfd_custom_kind *first = served(f), *now;
        assert_non_null(first);
        put_other(f, CRDS "gadgets.example.org", GROUP("example.com"), GROUP("example.org"));
        PATIENCE_AWAIT(n_served(f) == 2);
        now = served(f);
        assert_ptr_equal(now, first);
        hfd_custom_kind_unref(now);
        /* The same definition again, with another revision. */
        put_definition(f, DEFINITION(VERSION("v1", "true", "first")));
        put_other(f, CRDS "gadgets.example.net", GROUP("example.com"), GROUP("example.net"));
        PATIENCE_AWAIT(n_served(f) == 3);
        now = served(f);
        assert_ptr_equal(now, first);
        assert_false(atomic_load(&now->retired));
        assert_int_equal(atomic_load(&now->revision), store_client_mod_revision(f->store, CRD));
        hfd_custom_kind_unref(now);
        put_definition(f, DEFINITION(VERSION("v1", "true", "second")));
        PATIENCE_AWAIT(atomic_load(&first->retired));
        now = served(f);
        assert_ptr_not_equal(now, first);
        hfd_custom_kind_unref(now);
        hfd_custom_kind_unref(first);
}

/* lines of the log */
static atomic_uint n_too_many, n_invalid, n_valid_refused, n_without_schema;

static void note_line(void *ctx, enum hf_log_level level, const char *component,
                      const char *message) {
        if (strcmp(message, "gadgets.example.com is not served: there are more than 1024 custom "
                            "resources") == 0)
                atomic_fetch_add(&n_too_many, 1);
        else if (strncmp(message, "gadgets.example.com is not served", 33) == 0)
                atomic_fetch_add(&n_valid_refused, 1);
        else if (strstr(message, " is not served: the stored definition is not valid"))
                atomic_fetch_add(&n_invalid, 1);
        else if (strcmp(message, "gadgets.example.com is served without the schema of v1: the "
                                 "stored schema is not valid") == 0)
                atomic_fetch_add(&n_without_schema, 1);
}

/* The names of definitions begin with the plural, but kinds are found by their group first. */
static void test_kinds_are_found_whatever_the_order_of_their_names(void **state) {
        static const char *const groups[] = {"z.example", "y.example", "x.example"};
        static const char *const plurals[] = {"ants", "bees", "cats"};
        struct api_fixture *f = *state;

        for (size_t i = 0; i < 3; i++) {
                const char *text = DEFINITION(VERSION("v1", "true", "first"));
                char key[160], changed[2000], *to = changed;
                while (*text) {
                        bool is_group = strncmp(text, "example.com", 11) == 0;
                        bool is_plural = strncmp(text, "gadgets", 7) == 0;
                        const char *replaced = is_group ? groups[i] : plurals[i];
                        if (is_group || is_plural)
                                to += sprintf(to, "%s", replaced);
                        else
                                *to++ = *text;
                        if (is_group)
                                text += 11;
                        else
                                text += is_plural ? 7 : 1;
                }
                *to = '\0';
                (void)snprintf(key, sizeof key, CRDS "%s.%s", plurals[i], groups[i]);
                assert_true(store_client_put(f->store, key, changed) > 0);
        }
        PATIENCE_AWAIT(n_served(f) == 3);
        struct hfd_custom_set *set = hfd_custom_table_set(f->table);
        for (size_t i = 0; i < 3; i++)
                assert_non_null(hfd_custom_set_find(set, groups[i], plurals[i]));
        hfd_custom_set_unref(set);
}

/* Invalid definitions in the store do not keep the others from being served. */
static void test_definitions_that_cannot_be_are_not_served(void **state) {
        struct api_fixture *f = *state;

        f->host.log.write = note_line;
        put_other(f, CRDS "a.example.com", GROUP("example.com") ",", "");
        put_other(f, CRDS "b.example.com", "\"plural\":\"gadgets\",\"kind\":\"Gadget\"}",
                  "\"kind\":\"Gadget\"}");
        put_other(f, CRDS "c.example.com", GROUP("example.com"), GROUP("nodot"));
        put_other(f, CRDS "d.example.com", "\"status\":\"True\"", "\"status\":\"False\"");
        assert_true(store_client_put(f->store, CRDS "e.example.com", "{\"kind\":") > 0);
        put_definition(f, DEFINITION(VERSION("v1", "true", "first")));
        PATIENCE_AWAIT(n_served(f) > 0);
        assert_int_equal(n_served(f), 1);
        assert_true(atomic_load(&n_invalid) >= 3);
        assert_int_equal(atomic_load(&n_valid_refused), 0);
        struct hfd_custom_kind *kind = served(f);
        assert_non_null(kind);
        hfd_custom_kind_unref(kind);
}

static void test_a_lost_schema_is_logged(void **state) {
        struct api_fixture *f = *state;

        f->host.log.write = note_line;
        put_definition(f, DEFINITION(VERSION("v1", "true", "first")));
        PATIENCE_AWAIT(n_served(f) == 1);
        assert_int_equal(atomic_load(&n_without_schema), 0);
        put_other(f, CRD, "\"type\":\"string\"", "\"type\":\"file\"");
        PATIENCE_AWAIT(atomic_load(&n_without_schema) == 1);
}

/* The names of a kind are in the head of each of its objects, without escapes and with a limit, and
 * without escapes in lists and in discovery. */
static void test_definitions_with_other_names_than_the_rules_allow_are_not_served(void **state) {
        struct api_fixture *f = *state;
        char long_name[400], text[500];

        memset(long_name, 'a', sizeof long_name - 1);
        long_name[sizeof long_name - 1] = '\0';
        (void)snprintf(text, sizeof text, "\"kind\":\"%s\",", long_name);
        put_other(f, CRDS "a.example.com", "\"kind\":\"Gadget\",", text);
        put_other(f, CRDS "b.example.com", "\"kind\":\"Gadget\",", "\"kind\":\"Gad\\\"get\",");
        (void)snprintf(text, sizeof text, GROUP("%s.com"), long_name);
        put_other(f, CRDS "c.example.com", GROUP("example.com"), text);
        put_other(f, CRDS "d.example.com", "\"plural\":\"gadgets\",\"kind\":\"Gadget\"}",
                  "\"plural\":\"Gadgets\",\"kind\":\"Gadget\"}");
        put_other(f, CRDS "e.example.com", "\"name\":\"v1\"", "\"name\":\"v 1\"");
        put_other(f, CRDS "f.example.com", "\"GadgetList\"", "\"Gadget\\\"List\"");
        put_other(f, CRDS "g.example.com", "\"listKind\":", "\"singular\":\"\\\"\",\"listKind\":");
        put_definition(f, DEFINITION(VERSION("v1", "true", "first")));
        PATIENCE_AWAIT(has_kind(f, "Gadget"));
        assert_int_equal(n_served(f), 1);
}

static void test_a_kind_without_a_slot_is_not_served(void **state) {
        struct api_fixture *f = *state;
        const struct hfd_resource *slot;
        char plural[40];

        put_other(f, CRDS "gadgets.example.org", GROUP("example.com"), GROUP("example.org"));
        PATIENCE_AWAIT(n_served(f) == 1);
        for (size_t i = 0; i < HFD_CUSTOM_SLOTS_MAX; i++) {
                (void)snprintf(plural, sizeof plural, "things%zu", i);
                assert_int_equal(hfd_custom_table_slot(f->table, "example.com", plural, &slot), 0);
        }
        f->host.log.write = note_line;
        put_definition(f, DEFINITION(VERSION("v1", "true", "first")));
        PATIENCE_AWAIT(atomic_load(&n_too_many) > 0);
        assert_int_equal(n_served(f), 1);
        assert_int_equal(get(f, "a"), HF_E_NOT_FOUND);
        assert_true(store_client_delete(f->store, CRDS "gadgets.example.org") > 0);
        PATIENCE_AWAIT(n_served(f) == 0); /* the other kinds still follow their definitions */
}

/* ---- the form of cached objects ---- */

/* Parses a definition of gadgets and makes its kind. */
static struct hfd_custom_kind *kind_of(struct hfd_custom_table *table, const char *text,
                                       uint64_t revision) {
        const struct hfd_resource *slot;
        struct hfd_custom_kind *kind;
        struct hf__json *json;

        assert_int_equal(hf__json_parse(text, strlen(text), &json, NULL), 0);
        assert_int_equal(hfd_custom_table_slot(table, "example.com", "gadgets", &slot), 0);
        assert_int_equal(hfd_custom_kind_new(json, NULL, slot, revision, &kind), 0);
        hf__json_free(json);
        return kind;
}

/* The number of cached gadgets that have the form of their slot. Asserts that all hold its row, so
 * that they keep no kind that is no more. */
static size_t count_formed(struct api_fixture *f) {
        static const struct hfd_scope all = {.prefix = ""};
        struct hfd_object_iter iter;
        struct hfd_snapshot snapshot;
        const struct hfd_resource *slot;
        struct hfd_object *object;
        size_t n = 0;

        assert_int_equal(hfd_custom_table_slot(f->table, "example.com", "gadgets", &slot), 0);
        const struct hfd_resource *form = hfd_slot_form_get(f->cacher, slot);
        assert_int_equal(hfd_snapshot_take_now(f->cacher, slot, &snapshot), 0);
        hfd_object_iter_init(&iter, &snapshot.objects, &all, "");
        for (; (object = hfd_object_iter_next(&iter)); n++)
                assert_ptr_equal(object->resource, form);
        hfd_snapshot_done(&snapshot);
        hfd_resource_unref(form);
        return n;
}

/* Whether the slot has the form of this row. */
static bool has_form(struct api_fixture *f, const struct hfd_resource *row) {
        const struct hfd_resource *slot;

        assert_int_equal(hfd_custom_table_slot(f->table, "example.com", "gadgets", &slot), 0);
        const struct hfd_resource *form = hfd_slot_form_get(f->cacher, slot);
        bool has = form == (row ? row : slot);
        hfd_resource_unref(form);
        return has;
}

/* A kind is served after the objects have their form, so that a read converts none. */
static void test_cached_objects_have_the_form_of_the_kind_that_is_served(void **state) {
        static const char *const defaults[] = {DEFINITION(VERSION("v1", "true", "first")),
                                               DEFINITION(VERSION("v1", "true", "second")),
                                               DEFINITION(VERSION("v1", "true",
                                                                  "x") "," VERSION("v2", "false",
                                                                                   "y"))};
        static const char *const texts[] = {"first", "second", "x"};
        struct api_fixture *f = *state;
        char key[128], text[200];

        for (unsigned i = 0; i < 70; i++) {
                (void)snprintf(key, sizeof key, GADGET "g%02u", i);
                (void)snprintf(text, sizeof text,
                               "{\"apiVersion\":\"example.com/v1\",\"kind\":\"Gadget\","
                               "\"metadata\":{\"name\":\"g%02u\",\"namespace\":\"default\"}}",
                               i);
                assert_true(store_client_put(f->store, key, text) > 0);
        }
        for (size_t i = 0; i < 3; i++) {
                put_definition(f, defaults[i]);
                PATIENCE_AWAIT(has_text(f, "g69", texts[i]));
                struct hfd_custom_kind *kind = served(f);
                assert_true(has_form(f, &kind->storage->row));
                hfd_custom_kind_unref(kind);
                assert_int_equal(count_formed(f), 70);
        }
        assert_true(store_client_delete(f->store, CRD) > 0);
        PATIENCE_AWAIT(has_form(f, NULL)); /* the slot has no form until the next definition */
}

/* All cached objects name the same kind, and not those by which each was written. */
static void test_an_object_takes_the_row_of_its_slot_if_the_form_is_the_same(void **state) {
        static const char first[] = DEFINITION(VERSION("v1", "true", "first"));
        struct api_fixture *f = *state;
        const struct hfd_resource *form;

        struct hfd_custom_kind *kind = kind_of(f->table, first, 1),
                               *same = kind_of(f->table, first, 2),
                               *other = kind_of(f->table,
                                                DEFINITION(VERSION("v1", "true", "second")), 3);
        assert_int_equal(hfd_slot_form_set(f->cacher, &kind->storage->row), 0);
        form = hfd_slot_form_of(f->cacher, &same->storage->row);
        assert_ptr_equal(form, &kind->storage->row);
        hfd_resource_unref(form);
        form = hfd_slot_form_of(f->cacher, &other->storage->row);
        assert_ptr_equal(form, &other->storage->row);
        hfd_resource_unref(form);
        /* The first of two kinds with one form stays. */
        assert_int_equal(hfd_slot_form_set(f->cacher, &same->storage->row), 0);
        form = hfd_slot_form_get(f->cacher, &same->storage->row);
        assert_ptr_equal(form, &kind->storage->row);
        hfd_resource_unref(form);
        hfd_slot_form_clear(f->cacher, &kind->storage->row);
        form = hfd_slot_form_get(f->cacher, &same->storage->row);
        assert_ptr_equal(form, &same->storage->row);
        hfd_resource_unref(form);
        hfd_custom_kind_unref(kind);
        hfd_custom_kind_unref(same);
        hfd_custom_kind_unref(other);
}

static int create(struct api_fixture *f, const char *name) {
        char body[200];

        (void)snprintf(body, sizeof body,
                       "{\"apiVersion\":\"example.com/v1\",\"kind\":\"Gadget\",\"metadata\":{"
                       "\"name\":\"%s\"}}",
                       name);
        const struct hf_request request = {.size = sizeof request,
                                           .verb = HF_VERB_CREATE,
                                           .resource = gadgets,
                                           .ns = "default",
                                           .body = body,
                                           .n_body = strlen(body)};
        return api_fixture_send(f, &request);
}

static struct client_watch *watch(struct api_fixture *f) {
        const struct hf_watch_spec spec = {.size = sizeof spec,
                                           .resource = gadgets,
                                           .ns = "default"};
        struct client_watch *seen = client_watch_new(f->client, &spec);

        client_watch_await(seen, 1); /* the watch has begun */
        return seen;
}

/* Later events would have another form, so the watch ends. A client then lists and watches anew. */
static void test_a_watch_ends_with_the_kind_that_it_is_of(void **state) {
        struct api_fixture *f = *state;

        put_definition(f, DEFINITION(VERSION("v1", "true", "first")));
        PATIENCE_AWAIT(create(f, "a") == 0);
        struct client_watch *of_first = watch(f);
        put_definition(f, DEFINITION(VERSION("v1", "true", "second")));
        assert_int_equal(client_watch_await_end(of_first), 0);
        PATIENCE_AWAIT(get(f, "a") == 0);
        struct client_watch *of_second = watch(f);
        assert_true(store_client_delete(f->store, CRD) > 0);
        assert_int_equal(client_watch_await_end(of_second), 0);
        client_watch_free(of_first);
        client_watch_free(of_second);
}

static struct {
        struct api_fixture *f;
        struct hfd_custom_kind *first; /* the kind of the watch */
        atomic_bool has_begun, finds_next, has_ended;
} ending;

static void note_begin(void *ctx, const struct hf_event *event) {
        atomic_store(&ending.has_begun, true);
}

static void note_end(void *ctx, int error, const struct hf_status *status) {
        struct hfd_custom_kind *kind = served(ending.f);

        atomic_store(&ending.finds_next, kind && kind != ending.first);
        if (kind)
                hfd_custom_kind_unref(kind);
        atomic_store(&ending.has_ended, true);
}

/* Its client watches anew at once, and must not find the old kind again. */
static void test_the_next_kind_is_served_when_a_watch_ends(void **state) {
        const struct hf_watch_spec spec = {.size = sizeof spec,
                                           .resource = gadgets,
                                           .ns = "default"};
        uint64_t id;

        ending.f = *state;
        put_definition(ending.f, DEFINITION(VERSION("v1", "true", "first")));
        PATIENCE_AWAIT(create(ending.f, "a") == 0);
        ending.first = served(ending.f);
        assert_int_equal(hf_client_watch(ending.f->client, &spec, note_begin, note_end, NULL, &id),
                         0);
        PATIENCE_AWAIT(atomic_load(&ending.has_begun));
        put_definition(ending.f, DEFINITION(VERSION("v1", "true", "second")));
        PATIENCE_AWAIT(atomic_load(&ending.has_ended));
        assert_true(atomic_load(&ending.finds_next));
        hfd_custom_kind_unref(ending.first);
}

/* The feed is stopped, so this instance does not learn what happens to the definition. */
static void test_an_instance_that_lags_creates_no_object_of_a_deleted_definition(void **state) {
        struct api_fixture *f = *state;
        static const char mark[] = "\"uid\":\"1\",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"";
        const char *text = DEFINITION(VERSION("v1", "true", "first"));
        const char *uid = strstr(text, "\"uid\":\"1\"");
        char marked[2000];

        put_definition(f, text);
        PATIENCE_AWAIT(create(f, "a") == 0);
        hfd_kind_feed_stop(f->feed);
        put_definition(f, text); /* the definition has changed, but is not being deleted */
        assert_int_equal(create(f, "b"), 0);
        (void)snprintf(marked, sizeof marked, "%.*s%s%s", (int)(uid - text), text, mark,
                       uid + strlen("\"uid\":\"1\""));
        put_definition(f, marked);
        assert_int_not_equal(create(f, "c"), 0);
        assert_int_equal(f->last.status.http_code, 405);
        assert_int_equal(store_client_mod_revision(f->store, GADGET "c"), 0);
        assert_true(store_client_delete(f->store, CRD) > 0);
        assert_int_equal(create(f, "d"), HF_E_NOT_FOUND);
        assert_int_equal(store_client_mod_revision(f->store, GADGET "d"), 0);
        assert_int_equal(get(f, "b"), 0);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_many_objects_follow_their_definition,
                                                api_fixture_set_up_custom, api_fixture_tear_down),
                cmocka_unit_test_setup_teardown(test_objects_follow_their_definition,
                                                api_fixture_set_up_custom, api_fixture_tear_down),
                cmocka_unit_test_setup_teardown(test_a_kind_stays_while_its_definition_stays,
                                                api_fixture_set_up_custom, api_fixture_tear_down),
                cmocka_unit_test_setup_teardown(
                        test_kinds_are_found_whatever_the_order_of_their_names,
                        api_fixture_set_up_custom, api_fixture_tear_down),
                cmocka_unit_test_setup_teardown(test_a_lost_schema_is_logged,
                                                api_fixture_set_up_custom, api_fixture_tear_down),
                cmocka_unit_test_setup_teardown(test_definitions_that_cannot_be_are_not_served,
                                                api_fixture_set_up_custom, api_fixture_tear_down),
                cmocka_unit_test_setup_teardown(
                        test_definitions_with_other_names_than_the_rules_allow_are_not_served,
                        api_fixture_set_up_custom, api_fixture_tear_down),
                cmocka_unit_test_setup_teardown(test_a_kind_without_a_slot_is_not_served,
                                                api_fixture_set_up_custom, api_fixture_tear_down),
                cmocka_unit_test_setup_teardown(
                        test_cached_objects_have_the_form_of_the_kind_that_is_served,
                        api_fixture_set_up_custom, api_fixture_tear_down),
                cmocka_unit_test_setup_teardown(
                        test_an_object_takes_the_row_of_its_slot_if_the_form_is_the_same,
                        api_fixture_set_up_custom, api_fixture_tear_down),
                cmocka_unit_test_setup_teardown(test_a_watch_ends_with_the_kind_that_it_is_of,
                                                api_fixture_set_up_custom, api_fixture_tear_down),
                cmocka_unit_test_setup_teardown(test_the_next_kind_is_served_when_a_watch_ends,
                                                api_fixture_set_up_custom, api_fixture_tear_down),
                cmocka_unit_test_setup_teardown(
                        test_an_instance_that_lags_creates_no_object_of_a_deleted_definition,
                        api_fixture_set_up_custom, api_fixture_tear_down),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
