/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The work of a patch grows as its input does: each input is doubled several times, and a doubled
 * input may take 2.5 times the steps and the processor time at most. The largest patches are as
 * large as a request may be.
 */
#undef NDEBUG
#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include <holdfast/error.h>

#include "base/json.h"
#include "base/strbuf.h"

#include "server/patch/json_patch.h"
#include "server/patch/merge_patch.h"
#include "server/patch/strategic_patch.h"
#include "server/resources/rows/resource_table.h"

#define REPEATS                                                                                    \
        3 /* the fastest run counts, because other programs use the processor's caches too */
#define DOUBLINGS 5
#define RATIO_MAX 2.5
/* The smallest input fits into the processor's caches and the largest does not. CACHES allows for
 * that. Quadratic work exceeds the bound all the same: it costs 1,024 times as much after five
 * doublings. */
#define CACHES   4
#define BODY_MAX ((size_t)3 << 20)

/* One input of size n. Returns the document and the patch, as JSON. */
typedef void (*make_fn)(size_t n, struct hf__strbuf *document, struct hf__strbuf *patch);

struct input {
        const char *name;
        enum hfd_patch type;
        const char *plural; /* of a strategic merge patch */
        size_t n;           /* the smallest size */
        make_fn make;
        int result;
};

static struct hf__json *parse(const struct hf__strbuf *text) {
        struct hf__json *json = NULL;

        assert_int_equal(text->error, 0);
        assert_int_equal(hf__json_parse(text->data, text->n, &json, NULL), 0);
        return json;
}

static double cpu_now(void) {
        struct timespec t;

        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
        return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double run(const struct input *input, const struct hf__json *patch,
                  struct hf__json **document, size_t *ret_steps) {
        struct hfd_patch_outcome outcome = {0};
        double began = cpu_now();
        int r = 0;

        switch (input->type) {
        case HFD_PATCH_JSON: r = hfd_json_patch_apply(document, patch, &outcome); break;
        case HFD_PATCH_MERGE: r = hfd_merge_patch_apply(document, patch, &outcome); break;
        case HFD_PATCH_STRATEGIC:
                r = hfd_strategic_patch_apply(hfd_resource_find("", "v1", input->plural), document,
                                              patch, &outcome);
                break;
        case HFD_PATCH_APPLY: fail(); break;
        }
        double spent = cpu_now() - began;
        if (r != input->result)
                fail_msg("%s: %d, %s", input->name, r, outcome.why);
        *ret_steps = outcome.steps;
        return spent;
}

/* Processor seconds of the fastest run, and the steps. */
static double measure(const struct input *input, size_t n, size_t *ret_steps) {
        struct hf__strbuf document_text = {0}, patch_text = {0};
        double fastest = 1e9;

        input->make(n, &document_text, &patch_text);
        assert_true(document_text.n < BODY_MAX && patch_text.n < BODY_MAX);
        for (int i = 0; i < REPEATS; i++) {
                struct hf__json *document = parse(&document_text), *patch = parse(&patch_text);
                double spent = run(input, patch, &document, ret_steps);
                if (spent < fastest)
                        fastest = spent;
                hf__json_free(document);
                hf__json_free(patch);
        }
        hf__strbuf_done(&document_text);
        hf__strbuf_done(&patch_text);
        return fastest;
}

static void expect_growth(const struct input *input) {
        size_t first_steps, steps = 0, n = input->n;
        double first = measure(input, n, &first_steps), last = 0, bound = 1;

        for (int i = 0; i < DOUBLINGS; i++) {
                n *= 2;
                bound *= RATIO_MAX;
                last = measure(input, n, &steps);
        }
        print_message("%-40s n=%zu: %zu steps, %.1f ms; n=%zu: %zu steps, %.1f ms\n", input->name,
                      input->n, first_steps, first * 1e3, n, steps, last * 1e3);
        if ((double)steps > bound * (double)first_steps || last > CACHES * bound * first)
                fail_msg("%s: %d doublings cost %.1f times the steps and %.1f times the "
                         "time, not %.1f",
                         input->name, DOUBLINGS, (double)steps / (double)first_steps, last / first,
                         bound);
}

/* ---- objects ---- */

/* Appends n members or elements, each with its number between the two texts. */
static void put_members(struct hf__strbuf *s, const char *before, const char *after, size_t n) {
        for (size_t i = 0; i < n; i++)
                hf__strbuf_printf(s, "%s%s%zu%s", i ? "," : "", before, i, after);
}

/* Appends the same between an opening and a closing text. */
static void put_whole(struct hf__strbuf *s, const char *open, const char *before, const char *after,
                      size_t n, const char *close) {
        hf__strbuf_puts(s, open);
        put_members(s, before, after, n);
        hf__strbuf_puts(s, close);
}

/* A small target gets many new members. */
static void make_new_members(size_t n, struct hf__strbuf *document, struct hf__strbuf *patch) {
        hf__strbuf_puts(document, "{\"data\":{\"a\":\"b\"}}");
        put_whole(patch, "{\"data\":{", "\"k", "\":\"\"", n, "}}");
}

/* Every member is replaced, in another order. */
static void make_changed_members(size_t n, struct hf__strbuf *document, struct hf__strbuf *patch) {
        put_whole(document, "{\"data\":{", "\"k", "\":\"\"", n, "}}");
        hf__strbuf_puts(patch, "{\"data\":{");
        for (size_t i = n; i > 0; i--)
                hf__strbuf_printf(patch, "%s\"k%zu\":\"x\"", i == n ? "" : ",", i - 1);
        hf__strbuf_puts(patch, "}}");
}

static void make_removed_members(size_t n, struct hf__strbuf *document, struct hf__strbuf *patch) {
        put_whole(document, "{\"data\":{", "\"k", "\":\"\"", n, "}}");
        put_whole(patch, "{\"data\":{", "\"k", "\":null", n, "}}");
}

static void make_retained_keys(size_t n, struct hf__strbuf *document, struct hf__strbuf *patch) {
        put_whole(document, "{\"data\":{", "\"k", "\":\"\"", n, "}}");
        put_whole(patch, "{\"data\":{\"$retainKeys\":[", "\"k", "\"", n, "]}}");
}

/* ---- lists ---- */

static void make_owners(size_t n, struct hf__strbuf *document, struct hf__strbuf *patch) {
        put_whole(document, "{\"metadata\":{\"ownerReferences\":[", "{\"uid\":\"", "\"}", n, "]}}");
        hf__strbuf_puts(patch, "{\"metadata\":{\"ownerReferences\":[");
        put_members(patch, "{\"uid\":\"", "\",\"x\":1}", n);
        hf__strbuf_putc(patch, ',');
        put_members(patch, "{\"uid\":\"n", "\"}", n);
        hf__strbuf_puts(patch, "]}}");
}

static void make_deleted_owners(size_t n, struct hf__strbuf *document, struct hf__strbuf *patch) {
        hf__strbuf_puts(document, "{\"metadata\":{\"ownerReferences\":[");
        for (size_t i = 0; i < n; i++)
                hf__strbuf_puts(document, i ? ",{\"uid\":\"same\"}" : "{\"uid\":\"same\"}");
        hf__strbuf_puts(document, "]}}");
        hf__strbuf_puts(patch, "{\"metadata\":{\"ownerReferences\":[");
        for (size_t i = 0; i < n; i++)
                hf__strbuf_puts(patch, i ? ",{\"$patch\":\"delete\",\"uid\":\"same\"}"
                                         : "{\"$patch\":\"delete\",\"uid\":\"same\"}");
        hf__strbuf_puts(patch, "]}}");
}

static void make_finalizers(size_t n, struct hf__strbuf *document, struct hf__strbuf *patch) {
        put_whole(document, "{\"metadata\":{\"finalizers\":[", "\"a/", "\"", n, "]}}");
        hf__strbuf_puts(patch, "{\"metadata\":{\"$setElementOrder/finalizers\":[");
        for (size_t i = n; i > 0; i--)
                hf__strbuf_printf(patch, "%s\"a/%zu\"", i == n ? "" : ",", i - 1);
        hf__strbuf_putc(patch, ',');
        put_members(patch, "\"b/", "\"", n);
        put_whole(patch, "],\"finalizers\":[", "\"b/", "\"", n,
                  "],\"$deleteFromPrimitiveList/finalizers\":[");
        put_members(patch, "\"a/", "\"", n);
        hf__strbuf_puts(patch, "]}}");
}

/* The merge key of each element is a large object in the document and a string in the patch. The
 * types decide that they differ, without a comparison of values. */
static void make_wrong_types(size_t n, struct hf__strbuf *document, struct hf__strbuf *patch) {
        put_whole(document, "{\"secrets\":[", "{\"name\":{\"a\":{\"b\":{\"c\":", "}}}}", n, "]}");
        put_whole(patch, "{\"secrets\":[", "{\"name\":\"", "\"}", n,
                  ",{\"name\":{\"a\":{\"b\":{\"c\":-1}}}}]}");
}

/* One element is patched again and again, and has a list in which an element is large. */
static void make_repeated_elements(size_t n, struct hf__strbuf *document,
                                   struct hf__strbuf *patch) {
        hf__strbuf_puts(document, "{\"template\":{\"spec\":{\"containers\":[]}}}");
        put_whole(patch,
                  "{\"template\":{\"spec\":{\"containers\":[{\"name\":\"a\",\"env\":[{\"name\":"
                  "\"x\",\"z\":[",
                  "", "", n, "]}]}");
        for (size_t i = 0; i < n; i++)
                hf__strbuf_puts(patch, ",{\"name\":\"a\",\"env\":[{\"name\":\"y\"}]}");
        hf__strbuf_puts(patch, "]}}}");
}

/* The same, but the merge key of the large element comes after all other members. */
static void make_late_keys(size_t n, struct hf__strbuf *document, struct hf__strbuf *patch) {
        hf__strbuf_puts(document, "{\"template\":{\"spec\":{\"containers\":[]}}}");
        put_whole(patch, "{\"template\":{\"spec\":{\"containers\":[{\"name\":\"a\",\"env\":[{",
                  "\"k", "\":0", n, ",\"name\":\"x\"}]}");
        for (size_t i = 0; i < n; i++)
                hf__strbuf_puts(patch, ",{\"name\":\"a\",\"env\":[{\"name\":\"y\"}]}");
        hf__strbuf_puts(patch, "]}}}");
}

/* One element is patched again and again, and has a long list. */
static void make_repeated_lists(size_t n, struct hf__strbuf *document, struct hf__strbuf *patch) {
        put_whole(document, "{\"template\":{\"spec\":{\"containers\":[{\"name\":\"a\",\"env\":[",
                  "{\"name\":\"v", "\"}", n, "]}]}}}");
        hf__strbuf_puts(patch, "{\"template\":{\"spec\":{\"containers\":[{\"name\":\"a\"}");
        for (size_t i = 0; i < n; i++)
                hf__strbuf_puts(patch, ",{\"name\":\"a\",\"env\":[{\"name\":\"v0\"}]}");
        hf__strbuf_puts(patch, "]}}}");
}

/* One element is patched again and again, and has an object with long keys that begin alike. */
static void make_long_keys(size_t n, struct hf__strbuf *document, struct hf__strbuf *patch) {
        char key[6001];

        memset(key, 'k', sizeof key - 1);
        key[sizeof key - 1] = 0;
        hf__strbuf_puts(document, "{\"template\":{\"spec\":{\"containers\":[]}}}");
        hf__strbuf_puts(patch,
                        "{\"template\":{\"spec\":{\"containers\":[{\"name\":\"a\",\"resources\":{"
                        "\"limits\":{\"x\":0");
        for (size_t i = 0; i < 250; i++)
                hf__strbuf_printf(patch, ",\"%s%zu\":0", key, i);
        hf__strbuf_puts(patch, "}}}");
        for (size_t i = 0; i < n; i++)
                hf__strbuf_puts(patch, ",{\"name\":\"a\",\"resources\":{\"limits\":{\"x\":1}}}");
        hf__strbuf_puts(patch, "]}}}");
}

/* ---- JSON patch; the number of operations is limited, so the documents are larger ---- */

static void make_array_operations(size_t n, struct hf__strbuf *document, struct hf__strbuf *patch) {
        put_whole(document, "{\"a\":[", "", "", n * 20, "]}");
        hf__strbuf_puts(patch, "[");
        for (size_t i = 0; i < n; i += 4)
                hf__strbuf_printf(patch,
                                  "%s{\"op\":\"move\",\"from\":\"/a/%zu\",\"path\":\"/a/%zu\"},"
                                  "{\"op\":\"add\",\"path\":\"/a/%zu\",\"value\":-1},"
                                  "{\"op\":\"remove\",\"path\":\"/a/%zu\"},"
                                  "{\"op\":\"add\",\"path\":\"/a/-\",\"value\":-1}",
                                  i ? "," : "", n * 19, i, n * 10, n * 15 - i);
        hf__strbuf_puts(patch, "]");
}

static void make_object_operations(size_t n, struct hf__strbuf *document,
                                   struct hf__strbuf *patch) {
        put_whole(document, "{\"a\":{", "\"", "\":0", n * 10, "}}");
        hf__strbuf_puts(patch, "[");
        for (size_t i = 0; i < n; i += 4)
                hf__strbuf_printf(patch,
                                  "%s{\"op\":\"move\",\"from\":\"/a/%zu\",\"path\":\"/a/n%zu\"},"
                                  "{\"op\":\"add\",\"path\":\"/a/x%zu\",\"value\":{}},"
                                  "{\"op\":\"test\",\"path\":\"/a/x%zu\",\"value\":{}},"
                                  "{\"op\":\"remove\",\"path\":\"/a/n%zu\"}",
                                  i ? "," : "", n * 9 - i, i, i, i, i);
        hf__strbuf_puts(patch, "]");
}

/* The comparison with a large value ends where the small one does. */
static void make_tests(size_t n, struct hf__strbuf *document, struct hf__strbuf *patch) {
        put_whole(document, "{\"b\":0,\"a\":[", "", "", n * 20, "]}");
        hf__strbuf_puts(patch, "[");
        for (size_t i = 0; i + 1 < n; i += 2)
                hf__strbuf_printf(patch,
                                  "%s{\"op\":\"copy\",\"from\":\"/b\",\"path\":\"/b\"},"
                                  "{\"op\":\"test\",\"path\":\"/a/%zu\",\"value\":%zu}",
                                  i ? "," : "", n * 20 - 1 - i, n * 20 - 1 - i);
        hf__strbuf_puts(patch, ",{\"op\":\"test\",\"path\":\"/a\",\"value\":[]}]");
}

static void test_work_grows_as_the_input_does(void **state) {
        static const struct input inputs[] = {
                {"merge: new members", HFD_PATCH_MERGE, NULL, 6250, make_new_members, 0},
                {"merge: changed members", HFD_PATCH_MERGE, NULL, 5000, make_changed_members, 0},
                {"merge: removed members", HFD_PATCH_MERGE, NULL, 5000, make_removed_members, 0},
                {"strategic: new members", HFD_PATCH_STRATEGIC, "configmaps", 6250,
                 make_new_members, 0},
                {"strategic: retained keys", HFD_PATCH_STRATEGIC, "configmaps", 5000,
                 make_retained_keys, 0},
                {"strategic: owners", HFD_PATCH_STRATEGIC, "configmaps", 1500, make_owners, 0},
                {"strategic: deleted owners", HFD_PATCH_STRATEGIC, "configmaps", 2000,
                 make_deleted_owners, 0},
                {"strategic: finalizers", HFD_PATCH_STRATEGIC, "configmaps", 2000, make_finalizers,
                 0},
                {"strategic: wrong types", HFD_PATCH_STRATEGIC, "serviceaccounts", 2000,
                 make_wrong_types, HF_E_INVALID},
                {"strategic: repeated elements", HFD_PATCH_STRATEGIC, "podtemplates", 1000,
                 make_repeated_elements, 0},
                {"JSON patch: array", HFD_PATCH_JSON, NULL, 300, make_array_operations, 0},
                {"JSON patch: object", HFD_PATCH_JSON, NULL, 300, make_object_operations, 0},
                {"JSON patch: tests", HFD_PATCH_JSON, NULL, 300, make_tests, HF_E_INVALID},
        };

        for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++)
                expect_growth(&inputs[i]);
}

/* Work that is proportional to a product of sizes uses up the steps, however it is done. */
static void test_work_beyond_the_steps_is_refused(void **state) {
        static const struct input inputs[] = {
                {"strategic: late keys", HFD_PATCH_STRATEGIC, "podtemplates", 8000, make_late_keys,
                 HF_E_TOO_LARGE},
                {"strategic: repeated lists", HFD_PATCH_STRATEGIC, "podtemplates", 2500,
                 make_repeated_lists, HF_E_TOO_LARGE},
                {"strategic: long repeated lists", HFD_PATCH_STRATEGIC, "podtemplates", 60000,
                 make_repeated_lists, HF_E_TOO_LARGE},
                {"strategic: long keys", HFD_PATCH_STRATEGIC, "podtemplates", 2000, make_long_keys,
                 HF_E_TOO_LARGE},
        };
        size_t steps;

        for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++) {
                double spent = measure(&inputs[i], inputs[i].n, &steps);
                print_message("%-40s n=%zu: %.1f ms\n", inputs[i].name, inputs[i].n, spent * 1e3);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_work_grows_as_the_input_does),
                cmocka_unit_test(test_work_beyond_the_steps_is_refused),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
