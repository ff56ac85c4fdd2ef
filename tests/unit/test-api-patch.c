/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Patches: the examples of RFC 6902 and RFC 7386, merged lists and their directives, refusals, and
 * whole requests.
 */
#undef NDEBUG
#include <assert.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api_core_request.h"
#include "api_fixture.h"
#include "base/json.h"
#include "base/strbuf.h"

#include "server/patch/json_patch.h"
#include "server/patch/merge_patch.h"
#include "server/patch/strategic_patch.h"

static struct hf__json *parse(const char *text) {
        struct hf__json *json = NULL;

        assert_int_equal(hf__json_parse(text, strlen(text), &json, NULL), 0);
        return json;
}

static struct hfd_patch_outcome outcome;

static int apply_json(const char *text, const char *patch, char **ret_text) {
        struct hf__json *document = parse(text), *operations = parse(patch);
        struct hf__strbuf s = {0};
        outcome = (struct hfd_patch_outcome){0};
        int r = hfd_json_patch_apply(&document, operations, &outcome);

        hf__json_print(document, &s);
        *ret_text = strdup(s.data);
        hf__strbuf_done(&s);
        hf__json_free(document);
        hf__json_free(operations);
        return r;
}

/* result NULL: the patch is refused. */
static void expect_json(const char *text, const char *patch, const char *result) {
        char *made;
        int r = apply_json(text, patch, &made);

        if (result) {
                struct hf__json *a = parse(made), *b = parse(result);
                if (r != 0 || !hf__json_equal(a, b))
                        fail_msg("%s with %s made %s (%d, %s), not %s", text, patch, made, r,
                                 outcome.why, result);
                hf__json_free(a);
                hf__json_free(b);
        } else if (r != HF_E_INVALID) {
                fail_msg("%s with %s made %s (%d)", text, patch, made, r);
        }
        free(made);
}

/* RFC 6902, appendix A. */
static void test_json_patch_follows_rfc_6902(void **state) {
        static const char *const cases[][3] = {
                {"{\"foo\":\"bar\"}", "[{\"op\":\"add\",\"path\":\"/baz\",\"value\":\"qux\"}]",
                 "{\"baz\":\"qux\",\"foo\":\"bar\"}"},
                {"{\"foo\":[\"bar\",\"baz\"]}",
                 "[{\"op\":\"add\",\"path\":\"/foo/1\",\"value\":\"qux\"}]",
                 "{\"foo\":[\"bar\",\"qux\",\"baz\"]}"},
                {"{\"baz\":\"qux\",\"foo\":\"bar\"}", "[{\"op\":\"remove\",\"path\":\"/baz\"}]",
                 "{\"foo\":\"bar\"}"},
                {"{\"foo\":[\"bar\",\"qux\",\"baz\"]}", "[{\"op\":\"remove\",\"path\":\"/foo/1\"}]",
                 "{\"foo\":[\"bar\",\"baz\"]}"},
                {"{\"baz\":\"qux\",\"foo\":\"bar\"}",
                 "[{\"op\":\"replace\",\"path\":\"/baz\",\"value\":\"boo\"}]",
                 "{\"baz\":\"boo\",\"foo\":\"bar\"}"},
                {"{\"foo\":{\"bar\":\"baz\",\"waldo\":\"fred\"},\"qux\":{\"corge\":\"grault\"}}",
                 "[{\"op\":\"move\",\"from\":\"/foo/waldo\",\"path\":\"/qux/thud\"}]",
                 "{\"foo\":{\"bar\":\"baz\"},\"qux\":{\"corge\":\"grault\",\"thud\":\"fred\"}}"},
                {"{\"foo\":[\"all\",\"grass\",\"cows\",\"eat\"]}",
                 "[{\"op\":\"move\",\"from\":\"/foo/1\",\"path\":\"/foo/3\"}]",
                 "{\"foo\":[\"all\",\"cows\",\"eat\",\"grass\"]}"},
                {"{\"baz\":\"qux\",\"foo\":[\"a\",2,\"c\"]}",
                 "[{\"op\":\"test\",\"path\":\"/"
                 "baz\",\"value\":\"qux\"},{\"op\":\"test\",\"path\":\"/foo/1\",\"value\":2}]",
                 "{\"baz\":\"qux\",\"foo\":[\"a\",2,\"c\"]}"},
                {"{\"baz\":\"qux\"}", "[{\"op\":\"test\",\"path\":\"/baz\",\"value\":\"bar\"}]",
                 NULL},
                {"{\"foo\":\"bar\"}",
                 "[{\"op\":\"add\",\"path\":\"/child\",\"value\":{\"grandchild\":{}}}]",
                 "{\"foo\":\"bar\",\"child\":{\"grandchild\":{}}}"},
                {"{\"foo\":\"bar\"}",
                 "[{\"op\":\"add\",\"path\":\"/baz\",\"value\":\"qux\",\"xyz\":123}]",
                 "{\"foo\":\"bar\",\"baz\":\"qux\"}"},
                {"{\"foo\":\"bar\"}", "[{\"op\":\"add\",\"path\":\"/baz/bat\",\"value\":\"qux\"}]",
                 NULL},
                {"{\"/\":9,\"~1\":10}", "[{\"op\":\"test\",\"path\":\"/~01\",\"value\":10}]",
                 "{\"/\":9,\"~1\":10}"},
                {"{\"/\":9,\"~1\":10}", "[{\"op\":\"test\",\"path\":\"/~01\",\"value\":\"10\"}]",
                 NULL},
                {"{\"foo\":[\"bar\"]}",
                 "[{\"op\":\"add\",\"path\":\"/foo/-\",\"value\":[\"abc\",\"def\"]}]",
                 "{\"foo\":[\"bar\",[\"abc\",\"def\"]]}"},
        };

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
                expect_json(cases[i][0], cases[i][1], cases[i][2]);
}

static void test_json_patch_handles_edge_cases(void **state) {
        static const char *const cases[][3] = {
                {"{\"a\":1}", "[]", "{\"a\":1}"},
                {"{\"a\":1}", "[{\"op\":\"replace\",\"path\":\"\",\"value\":{\"b\":2}}]",
                 "{\"b\":2}"},
                {"{\"a\":1}", "[{\"op\":\"remove\",\"path\":\"\"}]", NULL},
                {"{\"a\":1}", "[{\"op\":\"add\",\"path\":\"/a\",\"value\":null}]", "{\"a\":null}"},
                {"{\"a\":1}", "[{\"op\":\"replace\",\"path\":\"/b\",\"value\":1}]", NULL},
                {"{\"a\":1}", "[{\"op\":\"remove\",\"path\":\"/b\"}]", NULL},
                {"{\"a\":1}", "[{\"op\":\"copy\",\"from\":\"\",\"path\":\"/b\"}]",
                 "{\"a\":1,\"b\":{\"a\":1}}"},
                {"{\"a\":{\"b\":1}}", "[{\"op\":\"move\",\"from\":\"/a\",\"path\":\"/a/b\"}]",
                 NULL},
                {"{\"a\":{\"b\":1}}", "[{\"op\":\"move\",\"from\":\"/a\",\"path\":\"/a\"}]",
                 "{\"a\":{\"b\":1}}"},
                {"{\"a\":{\"b\":1}}", "[{\"op\":\"move\",\"from\":\"/c\",\"path\":\"/c\"}]", NULL},
                {"{\"a\":{\"b\":1}}", "[{\"op\":\"move\",\"from\":\"/a/b\",\"path\":\"/a\"}]",
                 "{\"a\":1}"},
                {"{\"a\":[0]}", "[{\"op\":\"add\",\"path\":\"/a/1\",\"value\":1}]",
                 "{\"a\":[0,1]}"},
                {"{\"a\":[0]}", "[{\"op\":\"add\",\"path\":\"/a/0\",\"value\":1}]",
                 "{\"a\":[1,0]}"},
                {"{\"a\":[]}", "[{\"op\":\"add\",\"path\":\"/a/0\",\"value\":1}]", "{\"a\":[1]}"},
                {"{\"a\":[0]}", "[{\"op\":\"add\",\"path\":\"/a/2\",\"value\":1}]", NULL},
                {"{\"a\":[0]}", "[{\"op\":\"add\",\"path\":\"/a/00\",\"value\":1}]", NULL},
                {"{\"a\":[0]}", "[{\"op\":\"add\",\"path\":\"/a/-1\",\"value\":1}]", NULL},
                {"{\"a\":[0]}", "[{\"op\":\"remove\",\"path\":\"/a/-\"}]", NULL},
                {"{\"a\":[0]}",
                 "[{\"op\":\"test\",\"path\":\"/a/99999999999999999999\",\"value\":0}]", NULL},
                {"{\"a\":[0,1,2]}",
                 "[{\"op\":\"remove\",\"path\":\"/a/0\"},{\"op\":\"remove\",\"path\":\"/a/"
                 "1\"},{\"op\":\"add\",\"path\":\"/a/"
                 "-\",\"value\":3}]",
                 "{\"a\":[1,3]}"},
                {"{\"a\":{\"\":1}}", "[{\"op\":\"test\",\"path\":\"/a/\",\"value\":1}]",
                 "{\"a\":{\"\":1}}"},
                {"{\"a\":1}", "[{\"op\":\"test\",\"path\":\"/a\",\"value\":1.0}]", "{\"a\":1}"},
                {"{\"a\":{\"b\":1,\"c\":2}}",
                 "[{\"op\":\"test\",\"path\":\"/a\",\"value\":{\"c\":2,\"b\":1}}]",
                 "{\"a\":{\"b\":1,\"c\":2}}"},
                {"{\"a\":1}", "[{\"op\":\"test\",\"path\":\"/b\",\"value\":null}]", NULL},
                {"{\"a\":1}", "[{\"op\":\"add\",\"path\":\"a\",\"value\":1}]", NULL},
                {"{\"a\":1}", "[{\"op\":\"add\",\"path\":\"/a~2\",\"value\":1}]", NULL},
                {"{\"a\":1}", "[{\"op\":\"add\",\"path\":\"/b\"}]", NULL},
                {"{\"a\":1}", "[{\"op\":\"copy\",\"path\":\"/b\"}]", NULL},
                {"{\"a\":1}", "[{\"op\":\"spam\",\"path\":\"/b\",\"value\":1}]", NULL},
                {"{\"a\":1}", "[{\"path\":\"/b\",\"value\":1}]", NULL},
                {"{\"a\":1}", "[1]", NULL},
                {"{\"a\":\"x\"}", "[{\"op\":\"add\",\"path\":\"/a/b\",\"value\":1}]", NULL},
        };

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
                expect_json(cases[i][0], cases[i][1], cases[i][2]);
}

/*
 * A document that doubles, one that gets deeper, and a huge number of steps each reach their limit.
 */
static void test_json_patch_has_limits(void **state) {
        struct hf__strbuf patch = {0};
        char *made;

        hf__strbuf_puts(&patch, "[{\"op\":\"add\",\"path\":\"/a\",\"value\":\"0123456789\"}");
        for (int i = 0; i < 60; i++)
                hf__strbuf_printf(&patch, ",{\"op\":\"copy\",\"from\":\"\",\"path\":\"/c%d\"}", i);
        hf__strbuf_putc(&patch, ']');
        assert_int_equal(apply_json("{}", patch.data, &made), HF_E_TOO_LARGE);
        assert_non_null(strstr(outcome.why, "accumulated size increase of copy"));
        free(made);
        hf__strbuf_done(&patch);

        hf__strbuf_putc(&patch, '[');
        for (int i = 0; i < 200; i++) {
                hf__strbuf_puts(&patch,
                                i ? ",{\"op\":\"add\",\"path\":\"" : "{\"op\":\"add\",\"path\":\"");
                for (int k = 0; k <= i; k++)
                        hf__strbuf_puts(&patch, "/d");
                hf__strbuf_puts(&patch, "\",\"value\":{}}");
        }
        hf__strbuf_putc(&patch, ']');
        assert_int_equal(apply_json("{}", patch.data, &made), HF_E_TOO_LARGE);
        assert_non_null(strstr(outcome.why, "nested too deeply"));
        free(made);
        hf__strbuf_done(&patch);

        /* Each move to a deeper place measures the value that is moved. */
        struct hf__strbuf text = {0};
        hf__strbuf_puts(&text, "{\"b\":{\"c\":{}},\"a\":[0");
        for (int i = 0; i < 20000; i++)
                hf__strbuf_puts(&text, ",0");
        hf__strbuf_puts(&text, "]}");
        hf__strbuf_puts(&patch, "[{\"op\":\"test\",\"path\":\"/a/20000\",\"value\":0}");
        for (int i = 0; i < 3000; i++)
                hf__strbuf_puts(&patch, ",{\"op\":\"move\",\"from\":\"/a\",\"path\":\"/b/c/a\"},"
                                        "{\"op\":\"move\",\"from\":\"/b/c/a\",\"path\":\"/a\"}");
        hf__strbuf_putc(&patch, ']');
        assert_int_equal(apply_json(text.data, patch.data, &made), HF_E_TOO_LARGE);
        assert_string_equal(outcome.why, "The allowed maximum steps of a patch is 10485760");
        free(made);
        hf__strbuf_done(&text);
        hf__strbuf_done(&patch);
}

/* RFC 7386, appendix A, where both are objects (a body always is). */
static void test_merge_patch_follows_rfc_7386(void **state) {
        static const char *const cases[][3] = {
                {"{\"a\":\"b\"}", "{\"a\":\"c\"}", "{\"a\":\"c\"}"},
                {"{\"a\":\"b\"}", "{\"b\":\"c\"}", "{\"a\":\"b\",\"b\":\"c\"}"},
                {"{\"a\":\"b\"}", "{\"a\":null}", "{}"},
                {"{\"a\":\"b\",\"b\":\"c\"}", "{\"a\":null}", "{\"b\":\"c\"}"},
                {"{\"a\":[\"b\"]}", "{\"a\":\"c\"}", "{\"a\":\"c\"}"},
                {"{\"a\":\"c\"}", "{\"a\":[\"b\"]}", "{\"a\":[\"b\"]}"},
                {"{\"a\":{\"b\":\"c\"}}", "{\"a\":{\"b\":\"d\",\"c\":null}}",
                 "{\"a\":{\"b\":\"d\"}}"},
                {"{\"a\":[{\"b\":\"c\"}]}", "{\"a\":[1]}", "{\"a\":[1]}"},
                {"{\"e\":null}", "{\"a\":1}", "{\"e\":null,\"a\":1}"},
                {"{}", "{\"a\":{\"bb\":{\"ccc\":null}}}", "{\"a\":{\"bb\":{}}}"},
                {"{\"a\":[1]}", "{\"a\":{\"b\":null,\"c\":1}}", "{\"a\":{\"c\":1}}"},
                {"{\"a\":1}", "{}", "{\"a\":1}"},
        };

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                struct hf__json *document = parse(cases[i][0]), *patch = parse(cases[i][1]),
                                *result = parse(cases[i][2]);
                outcome = (struct hfd_patch_outcome){0};
                assert_int_equal(hfd_merge_patch_apply(&document, patch, &outcome), 0);
                if (!hf__json_equal(document, result))
                        fail_msg("%s with %s is not %s", cases[i][0], cases[i][1], cases[i][2]);
                hf__json_free(document);
                hf__json_free(patch);
                hf__json_free(result);
        }
}

/* Enough members for the index: a third is changed, a third removed, a third new. */
static void test_merge_patch_handles_many_members(void **state) {
        struct hf__json *document = hf__json_object(), *patch = hf__json_object(),
                        *result = hf__json_object();
        char key[32];

        for (int i = 0; i < 3000; i++) {
                (void)snprintf(key, sizeof key, "k%d", (i * 7919) % 3000);
                if (i % 3 < 2)
                        assert_int_equal(hf__json_set_i64(document, key, 1), 0);
                if (i % 3 == 0)
                        assert_int_equal(hf__json_put(patch, key, parse("null")), 0);
                else if (i % 3 == 1 || i % 3 == 2)
                        assert_int_equal(hf__json_set_i64(patch, key, 2), 0);
                if (i % 3)
                        assert_int_equal(hf__json_set_i64(result, key, 2), 0);
        }
        outcome = (struct hfd_patch_outcome){0};
        assert_int_equal(hfd_merge_patch_apply(&document, patch, &outcome), 0);
        assert_true(hf__json_equal(document, result));
        hf__json_free(document);
        hf__json_free(patch);
        hf__json_free(result);
}

static void expect_strategic(const char *plural, const char *text, const char *patch_text,
                             const char *result) {
        const struct hfd_resource *resource = hfd_resource_find("", "v1", plural);
        struct hf__json *document = parse(text), *patch = parse(patch_text);
        struct hf__strbuf s = {0};
        outcome = (struct hfd_patch_outcome){0};
        int r = hfd_strategic_patch_apply(resource, &document, patch, &outcome);

        hf__json_print(document, &s);
        if (result ? r || strcmp(s.data, result) != 0 : r != HF_E_INVALID)
                fail_msg("%s with %s made %s (%d, %s), not %s", text, patch_text, s.data, r,
                         outcome.why, result ? result : "an error");
        hf__strbuf_done(&s);
        hf__json_free(document);
        hf__json_free(patch);
}

static void test_strategic_merge_patch_merges_lists(void **state) {
        static const char *const cases[][3] = {
                /* by key: merged, added, deleted, replaced as a whole */
                {"{\"secrets\":[{\"name\":\"a\",\"x\":1},{\"name\":\"b\"}]}",
                 "{\"secrets\":[{\"name\":\"b\",\"y\":2}]}",
                 "{\"secrets\":[{\"name\":\"a\",\"x\":1},{\"name\":\"b\",\"y\":2}]}"},
                {"{\"secrets\":[{\"name\":\"a\"}]}", "{\"secrets\":[{\"name\":\"c\"}]}",
                 "{\"secrets\":[{\"name\":\"c\"},{\"name\":\"a\"}]}"},
                {"{\"secrets\":[{\"name\":\"a\"},{\"name\":\"b\"}]}",
                 "{\"secrets\":[{\"$patch\":\"delete\",\"name\":\"a\"}]}",
                 "{\"secrets\":[{\"name\":\"b\"}]}"},
                {"{\"secrets\":[{\"name\":\"a\"},{\"name\":\"b\"}]}",
                 "{\"secrets\":[{\"$patch\":\"replace\"},{\"name\":\"c\"}]}",
                 "{\"secrets\":[{\"name\":\"c\"}]}"},
                {"{}", "{\"secrets\":[{\"name\":\"c\"},{\"$patch\":\"delete\",\"name\":\"a\"}]}",
                 "{\"secrets\":[{\"name\":\"c\"}]}"},
                {"{\"secrets\":[{\"name\":\"a\"}]}", "{\"secrets\":null}", "{}"},
                {"{\"secrets\":[{\"name\":\"a\"}]}", "{\"secrets\":[{\"x\":1}]}", NULL},
                {"{\"secrets\":[{\"name\":\"a\"}]}",
                 "{\"secrets\":[{\"name\":\"a\",\"$patch\":\"spam\"}]}", NULL},
                {"{\"secrets\":[{\"name\":\"a\"}]}", "{\"secrets\":[\"a\"]}", NULL},
                /* scalars: as a set */
                {"{\"metadata\":{\"finalizers\":[\"a\",\"b\"]}}",
                 "{\"metadata\":{\"finalizers\":[\"b\",\"c\"]}}",
                 "{\"metadata\":{\"finalizers\":[\"a\",\"b\",\"c\"]}}"},
                {"{\"metadata\":{\"finalizers\":[\"a\",\"b\"]}}",
                 "{\"metadata\":{\"$deleteFromPrimitiveList/finalizers\":[\"a\",\"x\"]}}",
                 "{\"metadata\":{\"finalizers\":[\"b\"]}}"},
                {"{\"metadata\":{}}",
                 "{\"metadata\":{\"$deleteFromPrimitiveList/finalizers\":[\"a\"]}}",
                 "{\"metadata\":{}}"},
                {"{\"metadata\":{\"ownerReferences\":[{\"uid\":\"1\",\"name\":\"a\"}]}}",
                 "{\"metadata\":{\"ownerReferences\":[{\"uid\":\"1\",\"controller\":true}]}}",
                 "{\"metadata\":{\"ownerReferences\":[{\"uid\":\"1\",\"name\":\"a\",\"controller\":"
                 "true}]}}"},
                /* any other list is replaced */
                {"{\"imagePullSecrets\":[{\"name\":\"a\"}]}",
                 "{\"imagePullSecrets\":[{\"name\":\"b\"}]}",
                 "{\"imagePullSecrets\":[{\"name\":\"b\"}]}"},
                {"{\"spec\":{\"finalizers\":[\"a\"]}}", "{\"spec\":{\"finalizers\":[\"b\"]}}",
                 "{\"spec\":{\"finalizers\":[\"b\"]}}"},
        };

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
                expect_strategic("serviceaccounts", cases[i][0], cases[i][1], cases[i][2]);
        /* The same list in another kind has no key. */
        expect_strategic("configmaps", "{\"secrets\":[{\"name\":\"a\"}]}",
                         "{\"secrets\":[{\"name\":\"b\"}]}", "{\"secrets\":[{\"name\":\"b\"}]}");
        expect_strategic("namespaces",
                         "{\"status\":{\"conditions\":[{\"type\":\"A\",\"status\":\"True\"},{"
                         "\"type\":\"B\"}]}}",
                         "{\"status\":{\"conditions\":[{\"type\":\"A\",\"status\":\"False\"}]}}",
                         "{\"status\":{\"conditions\":[{\"type\":\"A\",\"status\":\"False\"},{"
                         "\"type\":\"B\"}]}}");
}

static void test_strategic_merge_patch_orders_lists(void **state) {
        static const char *const cases[][3] = {
                {"{\"secrets\":[{\"name\":\"a\"},{\"name\":\"b\"},{\"name\":\"c\"}]}",
                 "{\"$setElementOrder/secrets\":[{\"name\":\"c\"},{\"name\":\"a\"}]}",
                 "{\"secrets\":[{\"name\":\"b\"},{\"name\":\"c\"},{\"name\":\"a\"}]}"},
                {"{\"secrets\":[{\"name\":\"a\"}]}",
                 "{\"$setElementOrder/"
                 "secrets\":[{\"name\":\"n\"},{\"name\":\"a\"}],\"secrets\":[{\"name\":\"n\"}]}",
                 "{\"secrets\":[{\"name\":\"n\"},{\"name\":\"a\"}]}"},
                {"{}",
                 "{\"secrets\":[{\"name\":\"b\"},{\"name\":\"a\"}],\"$setElementOrder/"
                 "secrets\":[{\"name\":\"a\"},{\"name\":\"b\"}]}",
                 "{\"secrets\":[{\"name\":\"a\"},{\"name\":\"b\"}]}"},
                {"{}", "{\"$setElementOrder/secrets\":[{\"name\":\"a\"}]}", "{}"},
                {"{\"metadata\":{\"finalizers\":[\"a\",\"s\",\"b\"]}}",
                 "{\"metadata\":{\"$setElementOrder/"
                 "finalizers\":[\"b\",\"c\"],\"$deleteFromPrimitiveList/"
                 "finalizers\":[\"a\"],\"finalizers\":[\"c\"]}}",
                 "{\"metadata\":{\"finalizers\":[\"s\",\"b\",\"c\"]}}"},
        };

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
                expect_strategic("serviceaccounts", cases[i][0], cases[i][1], cases[i][2]);
}

static void test_strategic_merge_patch_follows_directives(void **state) {
        static const char *const cases[][3] = {
                {"{\"data\":{\"a\":\"1\",\"b\":\"2\"}}", "{\"data\":{\"a\":null,\"c\":\"3\"}}",
                 "{\"data\":{\"b\":\"2\",\"c\":\"3\"}}"},
                {"{\"data\":{\"a\":\"1\"}}", "{\"data\":{\"$patch\":\"replace\",\"b\":\"2\"}}",
                 "{\"data\":{\"b\":\"2\"}}"},
                {"{\"data\":{\"a\":\"1\"}}", "{\"data\":{\"$patch\":\"delete\"}}", "{\"data\":{}}"},
                {"{\"data\":{\"a\":\"1\"}}", "{\"data\":{\"$patch\":\"spam\"}}", NULL},
                {"{\"data\":{\"a\":\"1\",\"b\":\"2\",\"c\":\"3\"}}",
                 "{\"data\":{\"$retainKeys\":[\"a\",\"d\"],\"d\":\"4\"}}",
                 "{\"data\":{\"a\":\"1\",\"d\":\"4\"}}"},
                {"{}", "{\"data\":{\"$retainKeys\":[\"a\"],\"a\":\"1\",\"b\":null}}",
                 "{\"data\":{\"a\":\"1\"}}"},
                {"{\"data\":[1]}", "{\"data\":{\"a\":{\"$patch\":\"replace\",\"b\":1}}}",
                 "{\"data\":{\"a\":{\"b\":1}}}"},
        };

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
                expect_strategic("configmaps", cases[i][0], cases[i][1], cases[i][2]);
}

/* ---- whole requests ---- */

static const struct hf_resource accounts = {"", "v1", "serviceaccounts"};

static int patch_cm(struct api_fixture *f, enum hfd_patch type, const char *body) {
        return api_fixture_patch(f, api_configmaps, "default", "c", HFD_SUB_NONE, type, NULL, body);
}

static void make_cm(struct api_fixture *f) {
        assert_int_equal(
                api_fixture_request(f, HF_VERB_CREATE, api_configmaps, "default", NULL, NULL,
                                    "{\"metadata\":{\"name\":\"c\",\"labels\":{\"a\":\"b\"}},"
                                    "\"data\":{\"k\":\"v\"}}"),
                0);
}

static void test_patch_requests_are_served(void **state) {
        struct api_fixture *f = *state;
        char revision[32], body[200];

        assert_int_equal(patch_cm(f, HFD_PATCH_MERGE, "{}"), HF_E_NOT_FOUND);
        api_fixture_expect_failure(f, 404, "NotFound", "configmaps \"c\" not found");
        make_cm(f);
        (void)snprintf(revision, sizeof revision, "%s",
                       api_fixture_text_at(f, "metadata.resourceVersion"));
        assert_int_equal(patch_cm(f, HFD_PATCH_MERGE, "{\"data\":{\"k\":\"v\"}}"),
                         0); /* no change, so nothing is written */
        assert_string_equal(api_fixture_text_at(f, "metadata.resourceVersion"), revision);
        assert_int_equal(patch_cm(f, HFD_PATCH_MERGE,
                                  "{\"metadata\":{\"labels\":{\"a\":null,\"c\":\"d\"}},\"data\":{"
                                  "\"l\":\"w\"}}"),
                         0);
        assert_int_equal(f->last.status.http_code, 200);
        assert_non_null(strstr(f->last.body, "\"labels\":{\"c\":\"d\"}"));
        assert_non_null(strstr(f->last.body, "\"data\":{\"k\":\"v\",\"l\":\"w\"}"));
        assert_int_equal(patch_cm(f, HFD_PATCH_JSON,
                                  "[{\"op\":\"test\",\"path\":\"/data/"
                                  "k\",\"value\":\"v\"},{\"op\":\"replace\",\"path\":\"/data/"
                                  "k\",\"value\":\"x\"}]"),
                         0);
        assert_string_equal(api_fixture_text_at(f, "data.k"), "x");
        assert_int_equal(patch_cm(f, HFD_PATCH_JSON,
                                  "[{\"op\":\"test\",\"path\":\"/data/k\",\"value\":\"v\"}]"),
                         HF_E_INVALID);
        api_fixture_expect_failure(f, 422, "Invalid",
                                   "the server rejected our request due to an error in our "
                                   "request: testing value /data/k failed: test failed");
        assert_int_equal(patch_cm(f, HFD_PATCH_STRATEGIC,
                                  "{\"data\":{\"$patch\":\"replace\",\"m\":\"n\"}}"),
                         0);
        assert_non_null(strstr(f->last.body, "\"data\":{\"m\":\"n\"}"));
        /* A resourceVersion in the patch is a precondition. */
        (void)snprintf(body, sizeof body,
                       "{\"metadata\":{\"resourceVersion\":\"%s\"},\"data\":{\"k\":\"y\"}}",
                       revision);
        assert_int_equal(patch_cm(f, HFD_PATCH_MERGE, body), HF_E_CONFLICT);
        api_fixture_expect_failure(f, 409, "Conflict",
                                   "Operation cannot be fulfilled on configmaps \"c\": the object "
                                   "has been modified; please apply your changes to the "
                                   "latest "
                                   "version and try again");
        assert_int_equal(patch_cm(f, HFD_PATCH_MERGE, "{\"metadata\":{\"uid\":\"other\"}}"),
                         HF_E_CONFLICT);
}

/* The result is validated like the body of an update. */
static void test_bad_patches_and_results_are_refused(void **state) {
        struct api_fixture *f = *state;

        make_cm(f);
        assert_int_equal(patch_cm(f, HFD_PATCH_MERGE, "{\"data\":{\"m\":\"n\"}}"), 0);
        assert_int_equal(patch_cm(f, HFD_PATCH_MERGE, "{\"metadata\":{\"name\":\"d\"}}"),
                         HF_E_INVALID);
        api_fixture_expect_failure(f, 400, "BadRequest",
                                   "the name of the object (d) does not match the name on the URL "
                                   "(c)");
        assert_int_equal(patch_cm(f, HFD_PATCH_MERGE, "{\"data\":{\"k\":5}}"), HF_E_INVALID);
        assert_int_equal(f->last.status.http_code, 400);
        assert_int_equal(patch_cm(f, HFD_PATCH_MERGE, "{\"metadata\":{\"labels\":{\"-\":\"\"}}}"),
                         HF_E_INVALID);
        assert_int_equal(f->last.status.http_code, 422);
        assert_int_equal(patch_cm(f, HFD_PATCH_JSON,
                                  "[{\"op\":\"replace\",\"path\":\"\",\"value\":5}]"),
                         HF_E_INVALID);
        api_fixture_expect_failure(f, 422, "Invalid",
                                   "the server rejected our request due to an error in our "
                                   "request: json: cannot unmarshal number into Go value of "
                                   "type v1.ConfigMap");
        assert_int_equal(patch_cm(f, HFD_PATCH_MERGE, "[]"), HF_E_INVALID);
        api_fixture_expect_failure(f, 400, "BadRequest",
                                   "error decoding patch: json: cannot unmarshal array into Go "
                                   "value of type map[string]interface {}");
        assert_int_equal(patch_cm(f, HFD_PATCH_MERGE, "{\"a\":1,\"a\":2}"), HF_E_INVALID);
        api_fixture_expect_failure(f, 400, "BadRequest",
                                   "strict decoding error: duplicate field \"a\"");
        assert_int_equal(patch_cm(f, HFD_PATCH_MERGE, "{\"a\":"), HF_E_INVALID);
        api_fixture_expect_failure(f, 400, "BadRequest",
                                   "error decoding patch: json: syntax error at offset 4");
        assert_int_equal(api_fixture_patch(f, api_configmaps, "default", "c", HFD_SUB_NONE,
                                           HFD_PATCH_MERGE, "fieldValidation=Strict",
                                           "{\"dataa\":{}}"),
                         HF_E_INVALID);
        api_fixture_expect_failure(f, 400, "BadRequest",
                                   "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: "
                                   "strict decoding error: unknown field \"dataa\"");
        assert_int_equal(api_fixture_patch(f, api_configmaps, "default", "c", HFD_SUB_NONE,
                                           HFD_PATCH_MERGE, "dryRun=All", "{\"data\":null}"),
                         0);
        assert_int_equal(api_fixture_request(f, HF_VERB_GET, api_configmaps, "default", "c", NULL,
                                             NULL),
                         0);
        assert_string_equal(api_fixture_text_at(f, "data.m"), "n");
}

/* Kubernetes' words, which people search for. */
static void test_reasons_have_the_words_of_kubernetes(void **state) {
        struct api_fixture *f = *state;
        static const char refused[] =
                "the server rejected our request due to an error in our request: ";
        static const struct {
                enum hfd_patch type;
                int code;
                const char *patch, *reason;
        } cases[] = {
                {HFD_PATCH_JSON, 422, "[{\"op\":\"add\",\"path\":\"data\",\"value\":1}]",
                 "add operation does not apply: doc is missing path: \"data\": missing value"},
                {HFD_PATCH_JSON, 422, "[{\"op\":\"add\",\"path\":\"/x/y\",\"value\":1}]",
                 "add operation does not apply: doc is missing path: \"/x/y\": missing value"},
                {HFD_PATCH_JSON, 422, "[{\"op\":\"remove\",\"path\":\"/data/x\"}]",
                 "error in remove for path: '/data/x': Unable to remove nonexistent key: x: "
                 "missing "
                 "value"},
                {HFD_PATCH_JSON, 422, "[{\"op\":\"replace\",\"path\":\"/data/x\",\"value\":1}]",
                 "replace operation does not apply: doc is missing key: /data/x: missing value"},
                {HFD_PATCH_JSON, 422, "[{\"op\":\"test\",\"path\":\"/x/y\",\"value\":1}]",
                 "test operation does not apply: is missing path: /x/y: missing value"},
                {HFD_PATCH_JSON, 422, "[{\"op\":\"move\",\"from\":\"/x/y\",\"path\":\"/z\"}]",
                 "move operation does not apply: doc is missing from path: /x/y: missing value"},
                {HFD_PATCH_JSON, 422, "[{\"op\":\"copy\",\"from\":\"/data\",\"path\":\"/x/y\"}]",
                 "copy operation does not apply: doc is missing destination path: /x/y: missing "
                 "value"},
                {HFD_PATCH_JSON, 422, "[{\"op\":\"spam\",\"path\":\"/x\"}]",
                 "Unexpected kind: spam"},
                {HFD_PATCH_JSON, 422, "[{\"op\":\"add\",\"path\":\"/x\"}]",
                 "add operation failed to decode value: operation, missing value field: missing "
                 "value"},
                {HFD_PATCH_JSON, 422,
                 "[{\"op\":\"add\",\"path\":\"/l\",\"value\":[]},"
                 "{\"op\":\"add\",\"path\":\"/l/2\",\"value\":1}]",
                 "error in add for path: '/l/2': Unable to access invalid index: 2: invalid index "
                 "referenced"},
                {HFD_PATCH_STRATEGIC, 422,
                 "{\"metadata\":{\"ownerReferences\":[{\"name\":\"a\"}]}}",
                 "map: metadata.ownerReferences does not contain declared merge key: uid"},
                {HFD_PATCH_STRATEGIC, 422,
                 "{\"metadata\":{\"$setElementOrder/finalizers\":[1],\"finalizers\":[]}}",
                 "metadata.finalizers: expected a string, but received a float64"},
                {HFD_PATCH_STRATEGIC, 422, "{\"data\":{\"$patch\":\"spam\"}}",
                 "unknown patch type: spam in map: data"},
                {HFD_PATCH_STRATEGIC, 400, "{\"data\":{\"$retainKeys\":1}}",
                 "invalid patch format of retainKeys"},
                {HFD_PATCH_STRATEGIC, 400, "{\"metadata\":{\"$setElementOrder/finalizers\":1}}",
                 "invalid patch format of setElementOrder list"},
                {HFD_PATCH_STRATEGIC, 400,
                 "{\"metadata\":{\"$deleteFromPrimitiveList/finalizers\":1}}",
                 "invalid patch format of primitive list"},
                {HFD_PATCH_JSON, 400, "[1]",
                 "error decoding patch: json: cannot unmarshal number into Go value of type "
                 "handlers.jsonPatchOp"},
        };

        make_cm(f);
        assert_int_equal(patch_cm(f, HFD_PATCH_MERGE,
                                  "{\"metadata\":{\"finalizers\":[],\"ownerReferences\":[]}}"),
                         0);
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                char message[400];
                (void)snprintf(message, sizeof message, "%s%s", cases[i].code == 422 ? refused : "",
                               cases[i].reason);
                assert_int_equal(patch_cm(f, cases[i].type, cases[i].patch), HF_E_INVALID);
                api_fixture_expect_failure(f, cases[i].code,
                                           cases[i].code == 422 ? "Invalid" : "BadRequest",
                                           message);
        }
}

static void test_too_many_operations_are_refused(void **state) {
        struct api_fixture *f = *state;
        struct hf__strbuf patch = {0};

        make_cm(f);
        for (int i = 0; i <= HFD_PATCH_OPS_MAX; i++)
                hf__strbuf_puts(&patch, i ? ",{}" : "[{}");
        hf__strbuf_putc(&patch, ']');
        assert_int_equal(patch_cm(f, HFD_PATCH_JSON, patch.data), HF_E_TOO_LARGE);
        api_fixture_expect_failure(f, 413, "RequestEntityTooLarge",
                                   "Request entity too large: The allowed maximum operations in a "
                                   "JSON patch is 10000, got 10001");
        hf__strbuf_done(&patch);
}

static void test_a_patch_changes_either_status_or_object(void **state) {
        struct api_fixture *f = *state;

        assert_int_equal(api_fixture_request(f, HF_VERB_CREATE, api_workspaces, NULL, NULL, NULL,
                                             "{\"metadata\":{\"name\":\"w\"},\"spec\":{\"a\":1}}"),
                         0);
        assert_int_equal(api_fixture_patch(f, api_workspaces, NULL, "w", HFD_SUB_STATUS,
                                           HFD_PATCH_MERGE, NULL,
                                           "{\"metadata\":{\"labels\":{\"a\":\"b\"}},\"status\":{"
                                           "\"phase\":\"Ready\"}}"),
                         0);
        assert_string_equal(api_fixture_text_at(f, "status.phase"), "Ready");
        assert_null(strstr(f->last.body, "labels"));
        assert_int_equal(api_fixture_patch(f, api_workspaces, NULL, "w", HFD_SUB_NONE,
                                           HFD_PATCH_MERGE, NULL,
                                           "{\"status\":null,\"spec\":{\"a\":2}}"),
                         0);
        assert_string_equal(api_fixture_text_at(f, "status.phase"), "Ready");
        assert_non_null(strstr(f->last.body, "\"generation\":2"));
        /* A patch removes the last finalizer. */
        assert_int_equal(api_fixture_patch(f, api_workspaces, NULL, "w", HFD_SUB_NONE,
                                           HFD_PATCH_MERGE, NULL,
                                           "{\"metadata\":{\"finalizers\":[\"a.b/c\"]}}"),
                         0);
        assert_int_equal(api_fixture_request(f, HF_VERB_DELETE, api_workspaces, NULL, "w", NULL,
                                             NULL),
                         0);
        assert_int_equal(
                api_fixture_patch(f, api_workspaces, NULL, "w", HFD_SUB_NONE, HFD_PATCH_JSON, NULL,
                                  "[{\"op\":\"remove\",\"path\":\"/metadata/finalizers\"}]"),
                0);
        assert_int_equal(api_fixture_request(f, HF_VERB_GET, api_workspaces, NULL, "w", NULL, NULL),
                         HF_E_NOT_FOUND);
}

/* A patch is a write like any other: its transaction compares the fence. */
static void test_a_patch_compares_the_fence(void **state) {
        struct api_fixture *f = *state;
        uint64_t term;

        make_cm(f);
        assert_int_equal(api_fixture_request(f, HF_VERB_CREATE, api_leases, "kube-system", NULL,
                                             NULL,
                                             "{\"metadata\":{\"name\":\"l\"},\"spec\":{"
                                             "\"holderIdentity\":\"me\"}}"),
                         0);
        term = strtoull(api_fixture_text_at(f, "metadata.resourceVersion"), NULL, 10);
        for (int stale = 0; stale < 2; stale++) {
                const struct hf_fence fence = {.ns = "kube-system",
                                               .name = "l",
                                               .identity = "me",
                                               .term = term + (uint64_t)stale};
                struct api_core_request patch = {
                        .request = {.verb = HFD_PATCH,
                                    .patch = HFD_PATCH_MERGE,
                                    .ns = "default",
                                    .name = "c",
                                    .body = "{\"data\":{\"k\":\"fenced\"}}",
                                    .n_body = 23,
                                    .fence = &fence}};
                patch.request.resource = hfd_resource_find("", "v1", "configmaps");
                assert_int_equal(api_core_request_run(f->registry, &patch),
                                 stale ? HF_E_STALE_TERM : 0);
                assert_true(patch.response.fence_echoed);
                api_response_deinit(&patch.response);
        }
}

/* ---- concurrent patches: all are applied, and none undoes another ---- */

struct patcher {
        struct api_fixture *f;
        int index;
};

static void *patch_thread(void *ctx) {
        struct patcher *p = ctx;
        char body[120];

        for (int i = 0; i < 50; i++) {
                struct api_core_request patch = {.request = {.verb = HFD_PATCH,
                                                             .patch = HFD_PATCH_STRATEGIC,
                                                             .ns = "default",
                                                             .name = "a",
                                                             .body = body}};
                patch.request.resource = hfd_resource_find("", "v1", "serviceaccounts");
                patch.request.n_body =
                        (size_t)snprintf(body, sizeof body,
                                         "{\"secrets\":[{\"name\":\"s-%d-%d\"}]}", p->index, i);
                assert(api_core_request_run(p->f->registry, &patch) == 0);
                api_response_deinit(&patch.response);
        }
        return NULL;
}

static void test_concurrent_patches_are_all_applied(void **state) {
        struct api_fixture *f = *state;
        struct patcher patchers[4];
        pthread_t threads[4];

        assert_int_equal(api_fixture_request(f, HF_VERB_CREATE, accounts, "default", NULL, NULL,
                                             "{\"metadata\":{\"name\":\"a\"}}"),
                         0);
        for (int i = 0; i < 4; i++) {
                patchers[i] = (struct patcher){f, i};
                assert_int_equal(pthread_create(&threads[i], NULL, patch_thread, &patchers[i]), 0);
        }
        for (int i = 0; i < 4; i++)
                pthread_join(threads[i], NULL);
        assert_int_equal(api_fixture_request(f, HF_VERB_GET, accounts, "default", "a", NULL, NULL),
                         0);
        assert_int_equal(api_fixture_count_at(f, "secrets"), 200);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_json_patch_follows_rfc_6902),
                cmocka_unit_test(test_json_patch_handles_edge_cases),
                cmocka_unit_test(test_json_patch_has_limits),
                cmocka_unit_test(test_merge_patch_follows_rfc_7386),
                cmocka_unit_test(test_merge_patch_handles_many_members),
                cmocka_unit_test(test_strategic_merge_patch_merges_lists),
                cmocka_unit_test(test_strategic_merge_patch_orders_lists),
                cmocka_unit_test(test_strategic_merge_patch_follows_directives),
                API_TEST(test_patch_requests_are_served),
                API_TEST(test_bad_patches_and_results_are_refused),
                API_TEST(test_reasons_have_the_words_of_kubernetes),
                API_TEST(test_too_many_operations_are_refused),
                API_TEST(test_a_patch_changes_either_status_or_object),
                API_TEST(test_a_patch_compares_the_fence),
                API_TEST(test_concurrent_patches_are_all_applied),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
