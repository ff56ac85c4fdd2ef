/* SPDX-License-Identifier: Apache-2.0 */
/* New claims and Ingresses that name no class get the default one, as with the admission plug-ins
 * of Kubernetes. */
#undef NDEBUG
#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "api_fixture.h"
#include "server/resources/rows/resource_table.h"
#include "store_client.h"

static const struct hf_resource claims = {"", "v1", "persistentvolumeclaims"},
                                ingresses = {"networking.k8s.io", "v1", "ingresses"};

#define MARK      "storageclass.kubernetes.io/is-default-class"
#define OLD_MARK  "storageclass.beta.kubernetes.io/is-default-class"
#define WEB_MARK  "ingressclass.kubernetes.io/is-default-class"
#define SIZE      "{\"requests\":{\"storage\":\"1\"}}"
#define CLAIM     "\"accessModes\":[\"ReadWriteOnce\"],\"resources\":" SIZE
#define INGRESS   "\"defaultBackend\":{\"service\":{\"name\":\"s\",\"port\":{\"number\":1}}}"
#define JANUARY   "2026-01-01T00:00:00Z"
#define FEBRUARY  "2026-02-01T00:00:00Z"
#define OLD_CLASS "volume.beta.kubernetes.io/storage-class"

/* Stores a class with a time of its own. plural: as in the store's keys. */
static void store_class(struct api_fixture *f, const char *plural, const char *kind,
                        const char *name, const char *created, const char *mark,
                        const char *value) {
        char key[80], text[500];

        (void)snprintf(key, sizeof key, "/registry/%s/%s", plural, name);
        (void)snprintf(text, sizeof text,
                       "{\"kind\":\"%s\",\"apiVersion\":\"storage.k8s.io/v1\",\"metadata\":{"
                       "\"name\":\"%s\",\"uid\":\"u\",\"creationTimestamp\":\"%s\","
                       "\"annotations\":{\"%s\":\"%s\"}},\"provisioner\":\"p\"}",
                       kind, name, created, mark, value);
        assert_true(store_client_put(f->store, key, text) > 0);
}

static void store_storage_class(struct api_fixture *f, const char *name, const char *created,
                                const char *mark, const char *value) {
        store_class(f, "storageclasses", "StorageClass", name, created, mark, value);
}

/* Creates an object, and expects this class; NULL = none. */
static void expect_class(struct api_fixture *f, struct hf_resource resource, const char *metadata,
                         const char *spec, const char *member, const char *class) {
        static int n;
        char body[500], path[60];

        (void)snprintf(body, sizeof body, "{\"metadata\":{\"name\":\"n%d\"%s},\"spec\":{%s}}", n++,
                       metadata, spec);
        assert_int_equal(api_fixture_request(f, HF_VERB_CREATE, resource, "default", NULL, NULL,
                                             body),
                         0);
        (void)snprintf(path, sizeof path, "spec.%s", member);
        assert_string_equal(api_fixture_text_at(f, path), class ? class : "");
        assert_null(strstr(f->last.body, "f:storageClassName"));
        if (!class)
                assert_null(strstr(f->last.body, "ClassName"));
}

static void expect_claim(struct api_fixture *f, const char *class) {
        expect_class(f, claims, "", CLAIM, "storageClassName", class);
}

static void test_a_claim_gets_the_newest_default(void **state) {
        struct api_fixture *f = *state;

        expect_claim(f, NULL);
        store_storage_class(f, "a-none", FEBRUARY, MARK, "false");
        expect_claim(f, NULL);
        store_storage_class(f, "c-old", JANUARY, OLD_MARK, "true");
        expect_claim(f, "c-old");
        store_storage_class(f, "b-old", JANUARY, MARK, "true");
        expect_claim(f, "b-old");
        store_storage_class(f, "z-new", FEBRUARY, MARK, "true");
        expect_claim(f, "z-new");
}

static void test_a_class_that_is_named_stays(void **state) {
        struct api_fixture *f = *state;

        store_storage_class(f, "usual", JANUARY, MARK, "true");
        assert_int_equal(api_fixture_request(f, HF_VERB_CREATE, claims, "default", NULL, NULL,
                                             "{\"metadata\":{\"name\":\"x\"},\"spec\":{" CLAIM
                                             ",\"storageClassName\":\"\"}}"),
                         0);
        assert_non_null(strstr(f->last.body, "\"storageClassName\":\"\""));
        assert_int_equal(api_fixture_request(f, HF_VERB_CREATE, claims, "default", NULL, NULL,
                                             "{\"metadata\":{\"name\":\"y\"},\"spec\":{" CLAIM
                                             ",\"storageClassName\":\"other\"}}"),
                         0);
        assert_string_equal(api_fixture_text_at(f, "spec.storageClassName"), "other");
        expect_class(f, claims, ",\"annotations\":{\"" OLD_CLASS "\":\"other\"}", CLAIM,
                     "storageClassName", NULL);
}

/* The default is set by a create only, also by that of an apply. */
static void test_an_update_sets_no_class(void **state) {
        static const char label[] = "{\"metadata\":{\"labels\":{\"a\":\"b\"}}}";
        static const char applied[] = "{\"apiVersion\":\"v1\",\"kind\":\"PersistentVolumeClaim\","
                                      "\"metadata\":{\"name\":\"q\"},\"spec\":{" CLAIM "}}";
        struct api_fixture *f = *state;

        api_fixture_make(f, claims, "default",
                         "{\"metadata\":{\"name\":\"p\"},\"spec\":{" CLAIM "}}");
        store_storage_class(f, "usual", JANUARY, MARK, "true");
        assert_int_equal(api_fixture_patch(f, claims, "default", "p", HFD_SUB_NONE, HFD_PATCH_MERGE,
                                           NULL, label),
                         0);
        assert_string_equal(api_fixture_text_at(f, "spec.storageClassName"), "");
        assert_int_equal(api_fixture_patch(f, claims, "default", "q", HFD_SUB_NONE, HFD_PATCH_APPLY,
                                           "fieldManager=m", applied),
                         0);
        assert_string_equal(api_fixture_text_at(f, "spec.storageClassName"), "usual");
}

static void test_an_ingress_gets_the_default_class(void **state) {
        struct api_fixture *f = *state;

        store_class(f, "ingressclasses", "IngressClass", "none", FEBRUARY, MARK, "true");
        expect_class(f, ingresses, "", INGRESS, "ingressClassName", NULL);
        store_class(f, "ingressclasses", "IngressClass", "web", JANUARY, WEB_MARK, "true");
        expect_class(f, ingresses, "", INGRESS, "ingressClassName", "web");
        expect_class(f, ingresses, ",\"annotations\":{\"kubernetes.io/ingress.class\":\"other\"}",
                     INGRESS, "ingressClassName", NULL);
}

int main(void) {
        hfd_resources_add_workloads();
        const struct CMUnitTest tests[] = {
                API_TEST(test_a_claim_gets_the_newest_default),
                API_TEST(test_a_class_that_is_named_stays),
                API_TEST(test_an_update_sets_no_class),
                API_TEST(test_an_ingress_gets_the_default_class),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
