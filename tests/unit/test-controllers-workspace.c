/* SPDX-License-Identifier: Apache-2.0 */
/* The workspace controller, from a workspace's creation to its deletion. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "server/controllers/base/object_client.h"
#include "server/controllers/base/string_list.h"
#include "server/controllers/context/controller_context.h"
#include "server/controllers/controllers.h"
#include "server/controllers/kinds/kinds.h"
#include "server/controllers/workspace_core.h"
#include "server/controllers/workspace_initializer.h"
#include "server/resources/strategies/strategies.h"

#define HELD "\"finalizers\":[\"tenancy.holdfast.dev/workspace\"]"

static struct hf__json *parsed(const char *text) {
        struct hf__json *json = NULL;
        assert_int_equal(hf__json_parse(text, strlen(text), &json, NULL), 0);
        return json;
}

static void expect(const char *metadata, const char *status, enum hfd_workspace_step step) {
        char text[512];
        (void)snprintf(text, sizeof text, "{\"metadata\":{%s},\"status\":{%s}}", metadata, status);
        struct hf__json *workspace = parsed(text);
        assert_int_equal(hfd_workspace_next(workspace), step);
        hf__json_free(workspace);
}

static void test_the_state_of_a_workspace_determines_the_next_step(void **state) {
        (void)state;
        expect("", "", HFD_WS_ADD_FINALIZER);
        expect("", "\"phase\":\"Ready\"",
               HFD_WS_ADD_FINALIZER); /* set by a client before the first write of the controller */
        expect(HELD, "", HFD_WS_SCHEDULE);
        expect(HELD, "\"phase\":\"\"", HFD_WS_SCHEDULE);
        expect(HELD, "\"phase\":\"Scheduling\"", HFD_WS_INITIALIZE);
        expect(HELD, "\"phase\":\"Initializing\",\"initializers\":[\"system:namespace\",\"x\"]",
               HFD_WS_CREATE_NAMESPACE);
        expect(HELD, "\"phase\":\"Initializing\",\"initializers\":[\"x\"]", HFD_WS_NOTHING);
        expect(HELD, "\"phase\":\"Initializing\",\"initializers\":[]", HFD_WS_READY);
        expect(HELD, "\"phase\":\"Initializing\"", HFD_WS_READY);
        expect(HELD, "\"phase\":\"Ready\"", HFD_WS_NOTHING);
        expect(HELD, "\"phase\":\"Unheard\"", HFD_WS_NOTHING);
        for (size_t i = 0; i < 3; i++) {
                static const char *const phases[] = {"", "\"phase\":\"Initializing\"",
                                                     "\"phase\":\"Ready\""};
                expect(HELD ",\"deletionTimestamp\":\"t\"", phases[i], HFD_WS_DELETE_NAMESPACE);
                expect("\"deletionTimestamp\":\"t\",\"finalizers\":[\"other\"]", phases[i],
                       HFD_WS_NOTHING);
                expect("\"deletionTimestamp\":\"t\",\"finalizers\":[\"tenancy.holdfast.dev/"
                       "workspace\",\"orphan\"]",
                       phases[i], HFD_WS_NOTHING);
        }
}

/*
 * From creation to Ready, with initializers of the workspace's own and registered ones; names in
 * both lists appear once.
 */
static void test_a_workspace_from_creation_to_deletion(void **state) {
        static const char *const registered[] = {"reg-a", "own", "reg-b"};
        struct hf__json *workspace = parsed(
                "{\"metadata\":{" HELD "},\"spec\":{\"initializers\":[\"own\",7,\"\",\"own2\"]}}");

        (void)state;
        assert_int_equal(hfd_workspace_next(workspace), HFD_WS_SCHEDULE);
        assert_int_equal(hfd_workspace_set_phase(workspace, "Scheduling"), 0);
        assert_int_equal(hfd_workspace_next(workspace), HFD_WS_INITIALIZE);
        assert_int_equal(hfd_workspace_initialize(workspace, registered, 3), 0);
        struct hf__strbuf out = {0};
        hf__json_print(hf__json_path(workspace, "status"), &out);
        assert_string_equal(out.data, "{\"phase\":\"Initializing\",\"initializers\":[\"system:"
                                      "namespace\",\"own\",\"own2\",\"reg-a\",\"reg-b\"]}");
        hf__strbuf_done(&out);
        assert_int_equal(hfd_workspace_next(workspace), HFD_WS_CREATE_NAMESPACE);
        assert_int_equal(hfd_workspace_namespace_created(workspace), 0);
        assert_int_equal(hfd_workspace_next(workspace), HFD_WS_NOTHING);
        assert_string_equal(hf__json_string(workspace, "status.phase"), "Initializing");
        static const char *const others[] = {"own", "own2", "reg-a", "reg-b"};
        for (size_t i = 0; i < 4; i++) {
                assert_int_equal(hfd_workspace_next(workspace), HFD_WS_NOTHING);
                assert_int_equal(hfd_string_list_remove(workspace, HFD_WS_INITIALIZERS, others[i]),
                                 0);
        }
        assert_int_equal(hfd_workspace_next(workspace), HFD_WS_READY);
        hf__json_free(workspace);
}

/* Two layers that must not include each other both define the name of the finalizer. */
static void test_the_server_adds_the_finalizer_that_the_controller_removes(void **state) {
        struct hf__json *workspace = hf__json_object();
        assert_int_equal(hfd_workspace_prepare(workspace, NULL), 0);
        struct hf__json *list = hf__json_path(workspace, "metadata.finalizers");
        assert_int_equal(hf__json_count(list), 1);
        assert_string_equal(hf__json_text(hf__json_first(list)), HFD_WS_FINALIZER);
        hf__json_free(workspace);
}

static void test_without_initializers_a_workspace_becomes_ready(void **state) {
        struct hf__json *workspace = parsed("{\"metadata\":{" HELD "}}");

        (void)state;
        assert_int_equal(hfd_workspace_initialize(workspace, NULL, 0), 0);
        assert_int_equal(hfd_workspace_namespace_created(workspace), 0);
        assert_string_equal(hf__json_string(workspace, "status.phase"), "Ready");
        assert_null(hf__json_path(workspace, HFD_WS_INITIALIZERS));
        hf__json_free(workspace);
}

static void test_the_number_of_initializers_is_limited(void **state) {
        struct hf__json *workspace = parsed("{\"metadata\":{" HELD "}}");
        static char names[200][8];
        const char *registered[200];

        (void)state;
        for (int i = 0; i < 200; i++) {
                (void)snprintf(names[i], sizeof names[i], "n%d", i);
                registered[i] = names[i];
        }
        assert_int_equal(hfd_workspace_initialize(workspace, registered, 200), 0);
        assert_int_equal(hf__json_count(hf__json_path(workspace, HFD_WS_INITIALIZERS)),
                         HFD_WS_MAX_INITIALIZERS);
        assert_int_equal(hfd_workspace_next(workspace), HFD_WS_CREATE_NAMESPACE);
        hf__json_free(workspace);
}

/* ---- deletion, when cache and server have different versions of the namespace ---- */

static struct {
        const char *cached, *served; /* NULL = there is none */
        const char *served_revision;
        bool deleted;
} fixture;

/*
 * The linker redirects the controller's calls of hfd_object_client_* to these functions (--wrap).
 */

int __wrap_hfd_object_client_get_cached(struct hf_informer *cache, const char *ns, const char *name,
                                        struct hf__json **ret_object);
int __wrap_hfd_object_client_get_cached(struct hf_informer *cache, const char *ns, const char *name,
                                        struct hf__json **ret_object) {
        const char *text = fixture.cached;

        return text ? hf__json_parse(text, strlen(text), ret_object, NULL) : HF_E_NOT_FOUND;
}

int __wrap_hfd_object_client_get(struct hf_term *term, const struct hf_resource *resource,
                                 const char *ns, const char *name, struct hf__json **ret_object);
int __wrap_hfd_object_client_get(struct hf_term *term, const struct hf_resource *resource,
                                 const char *ns, const char *name, struct hf__json **ret_object) {
        const char *text = fixture.served;

        return text ? hf__json_parse(text, strlen(text), ret_object, NULL) : HF_E_NOT_FOUND;
}

int __wrap_hfd_object_client_delete(struct hf_term *term, const struct hf_resource *resource,
                                    const char *ns, const char *name,
                                    const struct hfd_object_client_delete_options *what);
int __wrap_hfd_object_client_delete(struct hf_term *term, const struct hf_resource *resource,
                                    const char *ns, const char *name,
                                    const struct hfd_object_client_delete_options *what) {
        assert_string_equal(what->uid, "n");
        if (what->resource_version && strcmp(what->resource_version, fixture.served_revision) != 0)
                return HF_E_CONFLICT;
        fixture.deleted = true;
        return 0;
}

#define NS(revision, owner)                                                                        \
        "{\"metadata\":{\"uid\":\"n\",\"resourceVersion\":\"" revision "\"" owner "}}"
#define OWNED ",\"ownerReferences\":[{\"kind\":\"Workspace\",\"uid\":\"w\"}]"

static int end(const char *cached, const char *served, const char *revision, bool *ret_gone) {
        static struct hfd_kind kind;
        struct hfd_controller_context context = {.namespaces = &kind};

        fixture.cached = cached;
        fixture.served = served;
        fixture.served_revision = revision;
        fixture.deleted = false;
        return hfd_workspace_initializer_delete_namespace(&context, NULL, "ws-x", "w", ret_gone);
}

static void test_an_orphaned_namespace_is_not_deleted(void **state) {
        bool gone;

        (void)state;
        assert_int_equal(end(NS("1", OWNED), NS("1", OWNED), "1", &gone), 0);
        assert_true(fixture.deleted && !gone);
        assert_int_equal(end(NS("1", ""), NS("1", ""), "1", &gone), 0);
        assert_true(!fixture.deleted && gone);
        assert_int_equal(end(NULL, NS("1", OWNED), "1", &gone), 0);
        assert_true(fixture.deleted && !gone);
        /*
         * The garbage collector has removed the owner, because the workspace is deleted as
         * "orphan", and the cache does not know it yet.
         */
        assert_int_equal(end(NS("1", OWNED), NS("2", ""), "2", &gone), HF_E_CONFLICT);
        assert_false(fixture.deleted);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_the_state_of_a_workspace_determines_the_next_step),
                cmocka_unit_test(test_a_workspace_from_creation_to_deletion),
                cmocka_unit_test(test_the_server_adds_the_finalizer_that_the_controller_removes),
                cmocka_unit_test(test_without_initializers_a_workspace_becomes_ready),
                cmocka_unit_test(test_the_number_of_initializers_is_limited),
                cmocka_unit_test(test_an_orphaned_namespace_is_not_deleted),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
