/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The three types of patches, without requests: the examples of RFC 6902 and RFC 7386, merged lists
 * and their directives.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <holdfast/error.h>

#include "base/json.h"
#include "base/strbuf.h"

#include "server/patch/json_patch.h"
#include "server/patch/merge_patch.h"
#include "server/patch/strategic_patch.h"
#include "server/resources/rows/resource_table.h"

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
                {"{\"a\":{\"\":1}}", "[{\"op\":\"test\",\"path\":\"/a/\",\"value\":1}]",
                 "{\"a\":{\"\":1}}"},
                {"{\"a\":1}", "[{\"op\":\"test\",\"path\":\"/a\",\"value\":1.0}]", "{\"a\":1}"},
                {"{\"a\":{\"b\":1,\"c\":2}}",
                 "[{\"op\":\"test\",\"path\":\"/a\",\"value\":{\"c\":2,\"b\":1}}]",
                 "{\"a\":{\"b\":1,\"c\":2}}"},
                {"{\"a\":1}", "[{\"op\":\"test\",\"path\":\"/b\",\"value\":null}]", "{\"a\":1}"},
                {"{\"a\":1}", "[{\"op\":\"test\",\"path\":\"/a\",\"value\":null}]", NULL},
                {"{\"a\":1}", "[{\"op\":\"test\",\"path\":\"/b\",\"value\":1}]", NULL},
                {"{\"a\":1}", "[{\"op\":\"test\",\"path\":\"/b/c\",\"value\":null}]", NULL},
                {"{\"a\":[]}", "[{\"op\":\"test\",\"path\":\"/a/-\",\"value\":null}]", NULL},
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

static void test_json_patch_addresses_items_of_arrays_by_their_index(void **state) {
        static const char *const cases[][3] = {
                {"{\"a\":[0]}", "[{\"op\":\"add\",\"path\":\"/a/1\",\"value\":1}]",
                 "{\"a\":[0,1]}"},
                {"{\"a\":[0]}", "[{\"op\":\"add\",\"path\":\"/a/0\",\"value\":1}]",
                 "{\"a\":[1,0]}"},
                {"{\"a\":[]}", "[{\"op\":\"add\",\"path\":\"/a/0\",\"value\":1}]", "{\"a\":[1]}"},
                {"{\"a\":[0]}", "[{\"op\":\"add\",\"path\":\"/a/2\",\"value\":1}]", NULL},
                {"{\"a\":[0]}", "[{\"op\":\"add\",\"path\":\"/a/00\",\"value\":1}]", NULL},
                {"{\"a\":[0]}", "[{\"op\":\"add\",\"path\":\"/a/-1\",\"value\":1}]",
                 "{\"a\":[0,1]}"},
                {"{\"a\":[0]}", "[{\"op\":\"add\",\"path\":\"/a/-2\",\"value\":1}]",
                 "{\"a\":[1,0]}"},
                {"{\"a\":[0]}", "[{\"op\":\"add\",\"path\":\"/a/-3\",\"value\":1}]", NULL},
                {"{\"a\":[0,1]}", "[{\"op\":\"replace\",\"path\":\"/a/-1\",\"value\":2}]",
                 "{\"a\":[0,2]}"},
                {"{\"a\":[0,1]}", "[{\"op\":\"remove\",\"path\":\"/a/-2\"}]", "{\"a\":[1]}"},
                {"{\"a\":[0,1]}", "[{\"op\":\"remove\",\"path\":\"/a/-3\"}]", NULL},
                {"{\"a\":[{}]}", "[{\"op\":\"add\",\"path\":\"/a/-1/b\",\"value\":1}]",
                 "{\"a\":[{\"b\":1}]}"},
                {"{\"a\":[0]}", "[{\"op\":\"remove\",\"path\":\"/a/-\"}]", NULL},
                {"{\"a\":[0]}",
                 "[{\"op\":\"test\",\"path\":\"/a/99999999999999999999\",\"value\":0}]", NULL},
                {"{\"a\":[0,1,2]}",
                 "[{\"op\":\"remove\",\"path\":\"/a/0\"},{\"op\":\"remove\",\"path\":\"/a/"
                 "1\"},{\"op\":\"add\",\"path\":\"/a/"
                 "-\",\"value\":3}]",
                 "{\"a\":[1,3]}"},
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
        for (int i = 0; i < HF__JSON_DEPTH_MAX - 1; i++) {
                hf__strbuf_puts(&patch,
                                i ? ",{\"op\":\"add\",\"path\":\"" : "{\"op\":\"add\",\"path\":\"");
                for (int k = 0; k <= i; k++)
                        hf__strbuf_puts(&patch, "/d");
                hf__strbuf_puts(&patch, "\",\"value\":{}}");
        }
        hf__strbuf_putc(&patch, ']');
        assert_int_equal(apply_json("{}", patch.data, &made), 0);
        hf__strbuf_done(&patch);
        static const struct {
                const char *value;
                int result;
        } lowest[] = {{"0", 0}, {"{}", HF_E_TOO_LARGE}, {"[]", HF_E_TOO_LARGE}};
        for (size_t i = 0; i < sizeof lowest / sizeof lowest[0]; i++) {
                char *result = NULL;
                hf__strbuf_puts(&patch, "[{\"op\":\"add\",\"path\":\"");
                for (int k = 0; k < HF__JSON_DEPTH_MAX; k++)
                        hf__strbuf_puts(&patch, "/d");
                hf__strbuf_printf(&patch, "\",\"value\":%s}]", lowest[i].value);
                assert_int_equal(apply_json(made, patch.data, &result), lowest[i].result);
                if (lowest[i].result != 0)
                        assert_non_null(strstr(outcome.why, "nested too deeply"));
                free(result);
                hf__strbuf_done(&patch);
        }
        free(made);

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

/* RFC 7386, appendix A: the examples in which document and patch are objects, as bodies always are.
 */
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
                /* The RFC says nothing about arrays; Kubernetes drops nulls that would be members.
                 */
                {"{\"d\":[{\"e\":1}]}",
                 "{\"a\":[{\"b\":\"x\",\"c\":null}],\"d\":[null,[{\"e\":null}],{\"f\":{\"g\":null}}"
                 "]}",
                 "{\"a\":[{\"b\":\"x\"}],\"d\":[null,[{}],{\"f\":{}}]}"},
                {"{\"a\":{}}", "{\"a\":[{\"b\":null}]}", "{\"a\":[{\"b\":null}]}"},
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

static void test_strategic_merge_patch_merges_lists_by_key(void **state) {
        static const char *const cases[][3] = {
                /* merged, added, deleted, replaced as a whole */
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
                {"{\"metadata\":{\"ownerReferences\":[{\"uid\":\"1\",\"name\":\"a\"}]}}",
                 "{\"metadata\":{\"ownerReferences\":[{\"uid\":\"1\",\"controller\":true}]}}",
                 "{\"metadata\":{\"ownerReferences\":[{\"uid\":\"1\",\"name\":\"a\",\"controller\":"
                 "true}]}}"},
        };

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
                expect_strategic("serviceaccounts", cases[i][0], cases[i][1], cases[i][2]);
        /* A list that replaces the old one may have one key several times: a node has addresses of
         * two families. So may a list that is new. */
        expect_strategic(
                "serviceaccounts", "{\"secrets\":[{\"name\":\"a\"}]}",
                "{\"secrets\":[{\"name\":\"i\",\"x\":4},{\"name\":\"i\",\"x\":6},{\"name\":\"h\"},"
                "{\"$patch\":\"replace\"}]}",
                "{\"secrets\":[{\"name\":\"i\",\"x\":4},{\"name\":\"i\",\"x\":6},{\"name\":\"h\"}"
                "]}");
        expect_strategic("serviceaccounts", "{}",
                         "{\"$setElementOrder/secrets\":[{\"name\":\"i\"},{\"name\":\"i\"}],"
                         "\"secrets\":[{\"name\":\"i\",\"x\":4},{\"name\":\"i\",\"x\":6}]}",
                         "{\"secrets\":[{\"name\":\"i\",\"x\":4},{\"name\":\"i\",\"x\":6}]}");
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

/* As kubectl patches one port of several. Numbers are equal whatever they look like, and a text is
 * no number. */
static void test_strategic_merge_patch_merges_lists_by_numbers(void **state) {
        static const char *const cases[][3] = {
                {"[{\"containerPort\":80,\"name\":\"a\"},{\"containerPort\":443}]",
                 "{\"$setElementOrder/ports\":[{\"containerPort\":80},{\"containerPort\":443}],"
                 "\"ports\":[{\"containerPort\":80,\"name\":\"b\"}]",
                 "[{\"containerPort\":80,\"name\":\"b\"},{\"containerPort\":443}]"},
                {"[{\"containerPort\":80},{\"containerPort\":443}]",
                 "{\"ports\":[{\"$patch\":\"delete\",\"containerPort\":80}]",
                 "[{\"containerPort\":443}]"},
                {"[{\"containerPort\":80}]", "{\"ports\":[{\"containerPort\":8e1,\"name\":\"a\"}]",
                 "[{\"containerPort\":80,\"name\":\"a\"}]"},
                {"[{\"containerPort\":80}]", "{\"ports\":[{\"containerPort\":\"80\"}]",
                 "[{\"containerPort\":\"80\"},{\"containerPort\":80}]"},
                {"[{\"containerPort\":80}]", "{\"ports\":[{\"containerPort\":{}}]", NULL},
                {"[{\"containerPort\":80}]", "{\"ports\":[{\"containerPort\":null}]", NULL},
        };
        static const char form[] =
                "{\"template\":{\"spec\":{\"containers\":[{\"name\":\"c\",\"ports\":%s}]}}}";
        char document[400], patch[400], result[400];

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                (void)snprintf(document, sizeof document, form, cases[i][0]);
                (void)snprintf(patch, sizeof patch,
                               "{\"template\":{\"spec\":{\"containers\":[{\"name\":\"c\",%s}]}}}",
                               cases[i][1] + 1);
                (void)snprintf(result, sizeof result, form, cases[i][2] ? cases[i][2] : "");
                expect_strategic("podtemplates", document, patch, cases[i][2] ? result : NULL);
        }
}

static void test_strategic_merge_patch_merges_sets_and_replaces_other_lists(void **state) {
        static const char *const cases[][3] = {
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
                /* any other list is replaced */
                {"{\"imagePullSecrets\":[{\"name\":\"a\"}]}",
                 "{\"imagePullSecrets\":[{\"name\":\"b\"}]}",
                 "{\"imagePullSecrets\":[{\"name\":\"b\"}]}"},
                {"{\"spec\":{\"finalizers\":[\"a\"]}}", "{\"spec\":{\"finalizers\":[\"b\"]}}",
                 "{\"spec\":{\"finalizers\":[\"b\"]}}"},
        };

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
                expect_strategic("serviceaccounts", cases[i][0], cases[i][1], cases[i][2]);
}

/* A path that is too long for any merged list is not taken for the path of the document. */
static void test_strategic_merge_patch_replaces_lists_below_a_long_path(void **state) {
        static const char text[] = "{\"%0*d\":{\"metadata\":{\"finalizers\":[\"%s\"]}}}";
        char document[400], patch[400];

        for (int n = 100; n <= 300; n++) {
                (void)snprintf(document, sizeof document, text, n, 0, "a");
                (void)snprintf(patch, sizeof patch, text, n, 0, "b");
                expect_strategic("serviceaccounts", document, patch, patch);
        }
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
                 "{\"secrets\":[{\"name\":\"a\"},{\"name\":\"b\"}],\"$setElementOrder/"
                 "secrets\":[{\"name\":\"a\"},{\"name\":\"x\"},{\"name\":\"b\"}]}",
                 "{\"secrets\":[{\"name\":\"a\"},{\"name\":\"b\"}]}"},
                /* The two lists contradict each other. */
                {"{}",
                 "{\"secrets\":[{\"name\":\"b\"},{\"name\":\"a\"}],\"$setElementOrder/"
                 "secrets\":[{\"name\":\"a\"},{\"name\":\"b\"}]}",
                 NULL},
                {"{\"metadata\":{\"finalizers\":[\"a\"]}}",
                 "{\"metadata\":{\"finalizers\":[\"b\"],\"$setElementOrder/finalizers\":[\"a\"]}}",
                 NULL},
                {"{\"secrets\":[{\"name\":\"a\"}]}",
                 "{\"secrets\":[{\"name\":\"a\",\"$patch\":\"delete\"},{\"name\":\"b\"}],"
                 "\"$setElementOrder/secrets\":[{\"name\":\"b\"}]}",
                 "{\"secrets\":[{\"name\":\"b\"}]}"},
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
                {"{\"data\":{}}", "{\"data\":{\"$retainKeys\":[\"a\"],\"a\":\"1\",\"b\":null}}",
                 "{\"data\":{\"a\":\"1\"}}"},
                {"{\"data\":{}}", "{\"data\":{\"$retainKeys\":[\"a\"],\"a\":\"1\",\"b\":\"2\"}}",
                 NULL},
                /* A directive for an object that is not there has nothing to do. */
                {"{\"data\":[1]}", "{\"data\":{\"a\":{\"$patch\":\"replace\",\"b\":1}}}",
                 "{\"data\":{}}"},
                {"{\"x\":1}", "{\"data\":{\"$patch\":\"delete\"}}", "{\"x\":1}"},
                {"{\"data\":[1]}", "{\"data\":{\"$patch\":\"delete\"}}", "{}"},
                {"{}", "{\"l\":[{\"$patch\":1},2],\"m\":{\"n\":{\"$patch\":\"delete\"}}}",
                 "{\"l\":[2],\"m\":{}}"},
        };

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
                expect_strategic("configmaps", cases[i][0], cases[i][1], cases[i][2]);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_json_patch_follows_rfc_6902),
                cmocka_unit_test(test_json_patch_handles_edge_cases),
                cmocka_unit_test(test_json_patch_addresses_items_of_arrays_by_their_index),
                cmocka_unit_test(test_json_patch_has_limits),
                cmocka_unit_test(test_merge_patch_follows_rfc_7386),
                cmocka_unit_test(test_merge_patch_handles_many_members),
                cmocka_unit_test(test_strategic_merge_patch_merges_lists_by_key),
                cmocka_unit_test(test_strategic_merge_patch_merges_lists_by_numbers),
                cmocka_unit_test(test_strategic_merge_patch_merges_sets_and_replaces_other_lists),
                cmocka_unit_test(test_strategic_merge_patch_replaces_lists_below_a_long_path),
                cmocka_unit_test(test_strategic_merge_patch_orders_lists),
                cmocka_unit_test(test_strategic_merge_patch_follows_directives),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
