/* SPDX-License-Identifier: Apache-2.0 */
/* Reviews of what a user may do, while the authorizer reads the roles and after that. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api_fixture.h"
#include "base/json.h"
#include "patience.h"
#include "rbac_fixture.h"
#include "server/authorization/authorizer.h"
#include "server/handlers/reviews/review.h"
#include "server/resources/rows/resource_table.h"

#define RBAC "rbac.authorization.k8s.io"

static const struct hf_host host = {.size = sizeof host};

/* Asks which rules the user ("alice,group") has in the namespace ns. The caller frees the
 * response. */
static struct hf__json *review_rules(struct hfd_authorizer *authorizer, const char *user) {
        static const char body[] = "{\"spec\":{\"namespace\":\"ns\"}}";
        const struct hfd_requester requester = {.subject = *rbac_fixture_subject(user), .uid = ""};
        const struct hfd_review_context context = {
                .authorizer = authorizer,
                .requester = &requester,
                .resource =
                        hfd_resource_find("authorization.k8s.io", "v1", "selfsubjectrulesreviews"),
                .ns = "",
        };
        struct hfd_response response = {0};
        struct hf__json *json = NULL;

        assert_non_null(context.resource);
        hfd_review(&context, body, strlen(body), &response);
        assert_int_equal(response.code, 201);
        assert_int_equal(hf__json_parse(response.body->data, response.body->n, &json, NULL), 0);
        hfd_response_done(&response);
        return json;
}

/* error: why the lists are not complete; NULL = they are. */
static void expect_rules_of(struct hfd_authorizer *authorizer, const char *user, size_t n,
                            const char *error) {
        struct hf__json *json = review_rules(authorizer, user);
        const char *found = hf__json_string(json, "status.evaluationError");

        assert_int_equal(hf__json_count(hf__json_path(json, "status.resourceRules")), n);
        if (n == 0)
                assert_int_equal(hf__json_count(hf__json_path(json, "status.nonResourceRules")), 0);
        assert_int_equal(hf__json_bool(json, "status.incomplete", error == NULL), error != NULL);
        assert_string_equal(found ? found : "", error ? error : "");
        hf__json_free(json);
}

static void expect_rules(struct hfd_authorizer *authorizer, size_t n, const char *error) {
        expect_rules_of(authorizer, "alice", n, error);
}

/* Returns when the cacher has it, so that the index is made of it. */
static void make_role(struct api_fixture *f) {
        static const struct hf_resource roles = {RBAC, "v1", "roles"},
                                        bindings = {RBAC, "v1", "rolebindings"};

        api_fixture_make(f, api_namespaces, NULL, "{\"metadata\":{\"name\":\"ns\"}}");
        api_fixture_make(f, roles, "ns",
                         "{\"metadata\":{\"name\":\"r\"},\"rules\":[{\"verbs\":[\"get\"],"
                         "\"apiGroups\":[\"\"],\"resources\":[\"configmaps\"]}]}");
        api_fixture_make(f, bindings, "ns",
                         "{\"metadata\":{\"name\":\"b\"},\"roleRef\":{\"apiGroup\":\"" RBAC
                         "\",\"kind\":\"Role\",\"name\":\"r\"},\"subjects\":[{\"kind\":\"User\","
                         "\"apiGroup\":\"" RBAC "\",\"name\":\"alice\"}]}");
        uint64_t revision = strtoull(api_fixture_text_at(f, "metadata.resourceVersion"), NULL, 10);
        assert_true(revision > 0);
        PATIENCE_AWAIT(hfd_cacher_revision(f->cacher) >= revision);
}

static void test_rules_are_incomplete_until_the_roles_are_read(void **state) {
        struct api_fixture *f = *state;
        struct hfd_authorizer *authorizer = NULL;

        make_role(f);
        assert_int_equal(hfd_authorizer_new(&host, HFD_MODE_RBAC, &authorizer), 0);
        expect_rules(authorizer, 0, "the roles are being read");
        assert_int_equal(hfd_authorizer_start(authorizer, f->cacher), 0);
        PATIENCE_AWAIT(hfd_authorizer_knows_roles(authorizer));
        expect_rules(authorizer, 1, NULL);
        hfd_authorizer_free(authorizer);
}

/* The rule of the other mode allows everything, but it is not all that there is. */
static void test_only_a_mode_that_needs_the_roles_waits_for_them(void **state) {
        static const struct {
                unsigned modes;
                size_t n;
                const char *error;
        } rows[] = {
                {0, 0, NULL},
                {HFD_MODE_ALWAYS_ALLOW, 1, NULL},
                {HFD_MODE_RBAC | HFD_MODE_ALWAYS_ALLOW, 1, "the roles are being read"},
        };

        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
                struct hfd_authorizer *authorizer = NULL;

                assert_int_equal(hfd_authorizer_new(&host, rows[i].modes, &authorizer), 0);
                expect_rules(authorizer, rows[i].n, rows[i].error);
                hfd_authorizer_free(authorizer);
        }
        expect_rules(NULL, 0, NULL);
}

/* The mode does not allow them anything. */
static void test_the_mode_that_allows_all_has_no_rules_for_strangers(void **state) {
        struct hfd_authorizer *authorizer = NULL;

        assert_int_equal(hfd_authorizer_new(&host, HFD_MODE_ALWAYS_ALLOW, &authorizer), 0);
        expect_rules_of(authorizer, "bob,system:authenticated", 1, NULL);
        expect_rules_of(authorizer, "system:anonymous,system:unauthenticated", 0, NULL);
        hfd_authorizer_free(authorizer);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                API_TEST(test_rules_are_incomplete_until_the_roles_are_read),
                cmocka_unit_test(test_only_a_mode_that_needs_the_roles_waits_for_them),
                cmocka_unit_test(test_the_mode_that_allows_all_has_no_rules_for_strangers),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
