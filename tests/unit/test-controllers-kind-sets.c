/* SPDX-License-Identifier: Apache-2.0 */
/* The sets of kinds that controllers work with, and what a definition contributes to them. */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "api_fixture.h"
#include "base/buf.h"
#include "base/json.h"
#include "patience.h"
#include "rbac_fixture.h"
#include "server/controllers/kinds/definition_row.h"
#include "server/controllers/kinds/kinds.h"

#define N(array) (sizeof(array) / sizeof(array)[0])

static const struct hf_resource definitions = {"apiextensions.k8s.io", "v1",
                                               "customresourcedefinitions"};

/* ---- sets ---- */

static void test_a_kind_is_found_by_each_of_its_names(void **state) {
        static struct hfd_kind kinds[] = {
                {.row = {{"", "v1", "pods"}, "Pod", true}, .id = 0},
                {.row = {{"example.com", "v1", "bs"}, "B", true}, .id = 3},
                {.row = {{"example", "v1", "bs"}, "B", true}, .id = 4},
                {.row = {{"example.com", "v1", "as"}, "A", true}, .id = 7},
                {.row = {{"", "v1", "nodes"}, "Node", false}, .id = 9},
        };
        static const struct {
                const char *api_version, *kind;
                int found; /* -1 = none */
        } rows[] = {
                {"v1", "Pod", 0},           {"v2", "Node", 4},          {"example.com/v1", "A", 3},
                {"example.com/v9", "B", 1}, {"example/v1", "B", 2},     {"example/v1", "A", -1},
                {"exampl/v1", "B", -1},     {"example.co/v1", "B", -1}, {"v1", "B", -1},
                {NULL, "Pod", -1},          {"v1", NULL, -1},           {"/v1", "Pod", 0},
        };
        struct hfd_kind *all[N(kinds)];
        struct hfd_kind_set *set;

        for (size_t i = 0; i < N(kinds); i++)
                all[i] = &kinds[i];
        assert_int_equal(hfd_kind_set_new(NULL, all, N(all), &set), 0);
        for (size_t i = 0; i < N(rows); i++)
                assert_ptr_equal(hfd_kind_set_find_by_name(set, rows[i].api_version, rows[i].kind),
                                 rows[i].found < 0 ? NULL : &kinds[rows[i].found]);
        for (size_t i = 0; i < N(kinds); i++) {
                assert_ptr_equal(hfd_kind_set_find_by_id(set, kinds[i].id), &kinds[i]);
                assert_ptr_equal(hfd_kind_set_find(set, kinds[i].row.resource.group,
                                                   kinds[i].row.resource.plural),
                                 &kinds[i]);
        }
        assert_null(hfd_kind_set_find_by_id(set, 5));
        assert_null(hfd_kind_set_find_by_id(set, 10));
        hfd_kind_set_unref(set);
}

/* ---- definitions ---- */

#define ESTABLISHED "'conditions':[{'type':'Established','status':'True'}]"
#define NAMES       "'acceptedNames':{'plural':'as','kind':'A'}"
#define SPEC        "'spec':{'group':'example.com','scope':'Namespaced','versions':["
#define V1          "{'name':'v1','served':true,'storage':false}"
#define V2          "{'name':'v2','served':false,'storage':true}"

static void test_a_definition_makes_a_kind_once_it_is_established(void **state) {
        static const struct {
                const char *definition;
                bool found;
        } rows[] = {
                {"{" SPEC V1 "," V2 "]},'status':{" NAMES "," ESTABLISHED "}}", true},
                {"{" SPEC V1 "," V2 "]},'status':{" NAMES "}}", false},
                {"{" SPEC V1 "]},'status':{" NAMES "," ESTABLISHED "}}", false},
                {"{" SPEC V2 "]},'status':{" ESTABLISHED "}}", false},
        };

        for (size_t i = 0; i < N(rows); i++) {
                struct hf__json *definition = rbac_fixture_json(rows[i].definition);
                struct hfd_kind_row row;
                assert_int_equal(hfd_definition_row(definition, &row), rows[i].found);
                if (rows[i].found) {
                        assert_string_equal(row.resource.group, "example.com");
                        assert_string_equal(row.resource.version, "v2");
                        assert_string_equal(row.resource.plural, "as");
                        assert_string_equal(row.kind, "A");
                        assert_true(row.namespaced);
                }
                hf__json_free(definition);
        }
}

static void test_a_definition_is_kept_without_its_schemas(void **state) {
        static const char text[] =
                "{\"kind\":\"K\",\"metadata\":{\"name\":\"n\",\"managedFields\":[1],"
                "\"annotations\":{\"kubectl.kubernetes.io/last-applied-configuration\":\"x\","
                "\"api-approved.kubernetes.io\":\"y\"}},\"spec\":{\"group\":\"g\",\"conversion\":{}"
                ","
                "\"versions\":[{\"name\":\"v1\",\"schema\":{},\"served\":true,"
                "\"subresources\":{}}]},\"status\":{\"conditions\":[]}}";
        struct hf__buf *reduced;

        assert_int_equal(hfd_definition_reduce(text, sizeof text - 1, &reduced), 0);
        assert_string_equal(reduced->data,
                            "{\"kind\":\"K\",\"metadata\":{\"name\":\"n\",\"annotations\":{"
                            "\"api-approved.kubernetes.io\":\"y\"}},\"spec\":{\"group\":\"g\","
                            "\"versions\":[{\"name\":\"v1\",\"served\":true}]},"
                            "\"status\":{\"conditions\":[]}}");
        hf__buf_unref(reduced);
        assert_int_equal(hfd_definition_reduce("{", 1, &reduced), -EPROTO);
}

/* ---- kinds that are added and removed ---- */

/* Whether the newest set is complete. */
static bool is_complete(struct hfd_kinds *kinds) {
        struct hfd_kind_set *set = hfd_kinds_get(kinds);
        bool complete = hfd_kinds_is_complete(kinds, set);

        hfd_kind_set_unref(set);
        return complete;
}

static bool has_kind(struct hfd_kinds *kinds) {
        struct hfd_kind_set *set = hfd_kinds_get(kinds);
        bool found = hfd_kind_set_find(set, "example.com", "as") != NULL;

        hfd_kind_set_unref(set);
        return found;
}

/* Makes a definition that is Established, and returns its revision. */
static const char *establish(struct api_fixture *f) {
        static const char body
                [] = "{\"metadata\":{\"name\":\"as.example.com\"},\"spec\":{\"group\":\"example."
                     "com\","
                     "\"scope\":\"Namespaced\",\"names\":{\"plural\":\"as\",\"kind\":\"A\"},"
                     "\"versions\":[{\"name\":\"v1\",\"served\":true,\"storage\":true,\"schema\":{"
                     "\"openAPIV3Schema\":{\"type\":\"object\"}}}]}}",
            status[] =
                    "{\"status\":{\"acceptedNames\":{\"plural\":\"as\",\"kind\":\"A\",\"singular\":"
                    "\"a\",\"listKind\":\"AList\"},\"conditions\":[{\"type\":\"NamesAccepted\","
                    "\"status\":\"True\"},{\"type\":\"Established\",\"status\":\"True\"}]}}";

        api_fixture_make(f, definitions, NULL, body);
        assert_int_equal(api_fixture_patch(f, definitions, NULL, "as.example.com", HFD_SUB_STATUS,
                                           HFD_PATCH_MERGE, NULL, status),
                         0);
        return api_fixture_text_at(f, "metadata.resourceVersion");
}

/* A kind is served some time after its definition was seen. */
struct serving {
        atomic_bool serves;
        atomic_uint n_asked;
};

static bool serves(void *ctx, const struct hf_resource *resource) {
        struct serving *serving = ctx;

        assert_string_equal(resource->plural, "as");
        atomic_fetch_add(&serving->n_asked, 1);
        return atomic_load(&serving->serves);
}

/* The number of new sets, after the one of the built-in kinds, for which memory is missing. */
static atomic_int n_failing;

int __real_hfd_kind_set_new(const struct hf_clock *clock, struct hfd_kind *const *kinds, size_t n,
                            struct hfd_kind_set **ret_set);
int __wrap_hfd_kind_set_new(const struct hf_clock *clock, struct hfd_kind *const *kinds, size_t n,
                            struct hfd_kind_set **ret_set);
int __wrap_hfd_kind_set_new(const struct hf_clock *clock, struct hfd_kind *const *kinds, size_t n,
                            struct hfd_kind_set **ret_set) {
        if (atomic_load(&n_failing) == 0)
                return __real_hfd_kind_set_new(clock, kinds, n, ret_set);
        atomic_fetch_sub(&n_failing, 1);
        return -ENOMEM;
}

/* The only built-in kind is that of definitions. */
static void init_kinds(struct api_fixture *f, struct serving *serving, struct hfd_kinds *kinds) {
        static const struct hfd_kind_row row = {{"apiextensions.k8s.io", "v1",
                                                 "customresourcedefinitions"},
                                                "CustomResourceDefinition",
                                                false};
        const struct hfd_kinds_config config = {.sources = {.host = &f->host,
                                                            .client = f->client,
                                                            .serving = {serves, serving}},
                                                .rows = &row,
                                                .n_rows = 1,
                                                .custom = true};

        assert_int_equal(hfd_kinds_init(kinds, &config), 0);
}

static void test_sets_follow_the_definitions(void **state) {
        struct serving serving = {false, 0};
        struct api_fixture *f = *state;
        struct hfd_kinds kinds;

        init_kinds(f, &serving, &kinds);
        struct hfd_kind_set *first = hfd_kinds_get(&kinds);
        assert_int_equal(first->n, 1);
        assert_int_equal(hfd_kinds_start(&kinds), 0);
        assert_int_equal(hf_informer_wait(kinds.kinds[0].informer, establish(f), hf_cancel_never()),
                         0);
        assert_false(hfd_kinds_is_complete(&kinds, first));
        PATIENCE_AWAIT(atomic_load(&serving.n_asked) > 2);
        assert_false(has_kind(&kinds));
        atomic_store(&serving.serves, true);
        PATIENCE_AWAIT(has_kind(&kinds));
        PATIENCE_AWAIT(is_complete(&kinds));
        struct hfd_kind_set *second = hfd_kinds_get(&kinds);
        PATIENCE_AWAIT(hf_cancel_fired(first->replaced)); /* soon after the new set exists */
        assert_false(hf_cancel_fired(second->replaced));
        assert_int_equal(second->n, 2);
        hfd_kind_set_unref(first);

        /* The set outlives the kind. */
        assert_int_equal(api_fixture_delete(f, definitions, NULL, "as.example.com", NULL), 0);
        assert_int_equal(api_fixture_patch(f, definitions, NULL, "as.example.com", 0,
                                           HFD_PATCH_MERGE, NULL,
                                           "{\"metadata\":{\"finalizers\":null}}"),
                         0);
        PATIENCE_AWAIT(!has_kind(&kinds));
        struct hfd_kind_set *third = hfd_kinds_get(&kinds);
        PATIENCE_AWAIT(hf_cancel_fired(second->replaced));
        assert_true(hf_informer_synced(second->kinds[1]->informer));
        assert_int_equal(third->n, 1);
        hfd_kind_set_unref(second);
        hfd_kind_set_unref(third);
        hfd_kinds_done(&kinds);
}

/* The kind is served long after the last event of its definition, so no event leads to the set. */
static void test_a_set_without_memory_is_made_later(void **state) {
        struct serving serving = {false, 0};
        struct api_fixture *f = *state;
        struct hfd_kinds kinds;

        init_kinds(f, &serving, &kinds);
        assert_int_equal(hfd_kinds_start(&kinds), 0);
        (void)establish(f);
        PATIENCE_AWAIT(atomic_load(&serving.n_asked) > 2);
        atomic_store(&n_failing, 2);
        atomic_store(&serving.serves, true);
        PATIENCE_AWAIT(has_kind(&kinds));
        assert_int_equal(atomic_load(&n_failing), 0);
        hfd_kinds_done(&kinds);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_kind_is_found_by_each_of_its_names),
                cmocka_unit_test(test_a_definition_makes_a_kind_once_it_is_established),
                cmocka_unit_test(test_a_definition_is_kept_without_its_schemas),
                cmocka_unit_test_setup_teardown(test_sets_follow_the_definitions,
                                                api_fixture_set_up_custom, api_fixture_tear_down),
                cmocka_unit_test_setup_teardown(test_a_set_without_memory_is_made_later,
                                                api_fixture_set_up_custom, api_fixture_tear_down),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
