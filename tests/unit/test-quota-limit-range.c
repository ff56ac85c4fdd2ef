/* SPDX-License-Identifier: Apache-2.0 */
/* The defaults that a LimitRange sets in a pod, and its refusals of pods and claims. */
#undef NDEBUG
#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "server/quota/limit_range.h"

static struct hf__json *parse(const char *text) {
        struct hf__json *json = NULL;

        assert_int_equal(hf__json_parse(text, strlen(text), &json, NULL), 0);
        return json;
}

#define RANGE(type, maps) "{\"spec\":{\"limits\":[{\"type\":\"" type "\"," maps "}]}}"
#define CONTAINER(name, requests, limits)                                                          \
        "{\"name\":\"" name "\",\"resources\":{\"requests\":{" requests "},\"limits\":{" limits    \
        "}}}"
#define POD(containers, inits)                                                                     \
        "{\"spec\":{\"containers\":[" containers "],\"initContainers\":[" inits "]}}"

static void containers_get_what_they_leave_out(void **state) {
        struct hf__json *
                range = parse(RANGE("Container", "\"default\":{\"memory\":\"2\",\"cpu\":"
                                                 "\"1\"},\"defaultRequest\":{\"cpu\":"
                                                 "\"500m\"}")),
               *pod = parse(POD(CONTAINER("a", "", "\"cpu\":\"3\"") ",{\"name\":\"b\"}",
                                CONTAINER("i", "\"cpu\":\"1\"", "\"memory\":\"1\""))),
               *wanted = parse(POD(
                       CONTAINER("a", "\"cpu\":\"500m\"",
                                 "\"cpu\":\"3\",\"memory\":\"2\"") "," CONTAINER("b",
                                                                                 "\"cpu\":\"500m\"",
                                                                                 "\"cpu\":\"1\","
                                                                                 "\"memory\":"
                                                                                 "\"2\""),
                       CONTAINER("i", "\"cpu\":\"1\"", "\"cpu\":\"1\",\"memory\":\"1\"")));

        assert_int_equal(hfd_limit_range_default_pod(range, pod), 0);
        assert_true(hf__json_equal(hf__json_get(pod, "spec"), hf__json_get(wanted, "spec")));
        assert_string_equal(hf__json_text(hf__json_get(hf__json_path(pod, "metadata.annotations"),
                                                       "kubernetes.io/limit-ranger")),
                            "LimitRanger plugin set: cpu request for container a; memory limit for "
                            "container a; cpu request for container b; cpu, memory limit for "
                            "container b; cpu limit for init container i");
        hf__json_free(range);
        hf__json_free(pod);
        hf__json_free(wanted);
}

static void assert_says(const char *range_text, enum hfd_quota_kind kind, const char *object_text,
                        const char *expected) {
        struct hf__json *range = parse(range_text), *object = parse(object_text);
        struct hf__strbuf why = {0};

        assert_int_equal(hfd_limit_range_check(range, kind, object, &why), 0);
        assert_string_equal(why.data ? why.data : "", expected);
        hf__strbuf_done(&why);
        hf__json_free(range);
        hf__json_free(object);
}

static void pods_are_told_which_bounds_they_break(void **state) {
        static const char two[] =
                POD(CONTAINER("a", "\"cpu\":\"1\"",
                              "\"cpu\":\"2\"") "," CONTAINER("b", "\"cpu\":\"1\"", ""),
                    CONTAINER("i", "\"cpu\":\"5\"", ""));

        assert_says(RANGE("Pod", "\"max\":{\"cpu\":\"5\"}"), HFD_QUOTA_PODS, two, "");
        assert_says(RANGE("Pod", "\"max\":{\"cpu\":\"4\"}"), HFD_QUOTA_PODS, two,
                    "maximum cpu usage per Pod is 4, but request is 5");
        assert_says(RANGE("Pod", "\"min\":{\"cpu\":\"6\",\"memory\":\"1\"}"), HFD_QUOTA_PODS, two,
                    "[minimum cpu usage per Pod is 6, but request is 5, minimum memory usage per "
                    "Pod is 1.  No request is specified]");
        assert_says(RANGE("Container", "\"max\":{\"cpu\":\"2\"}"), HFD_QUOTA_PODS, two,
                    "[maximum cpu usage per Container is 2.  No limit is specified, maximum cpu "
                    "usage per Container is 2.  No limit is specified]");
        assert_says(RANGE("Container", "\"maxLimitRequestRatio\":{\"cpu\":\"1500m\"}"),
                    HFD_QUOTA_PODS, POD(CONTAINER("a", "\"cpu\":\"1\"", "\"cpu\":\"2\""), ""),
                    "cpu max limit to request ratio per Container is 1500m, but provided ratio is "
                    "2.000000");
        assert_says(RANGE("PersistentVolumeClaim", "\"max\":{\"storage\":\"1\"}"), HFD_QUOTA_PODS,
                    two, "");
}

static void claims_have_bounds(void **state) {
        static const char claim[] =
                "{\"spec\":{\"resources\":{\"requests\":{\"storage\":\"5Gi\"}}}}";

        assert_says(RANGE("PersistentVolumeClaim", "\"max\":{\"storage\":\"5Gi\"}"),
                    HFD_QUOTA_CLAIMS, claim, "");
        assert_says(RANGE("PersistentVolumeClaim", "\"max\":{\"storage\":\"4Gi\"}"),
                    HFD_QUOTA_CLAIMS, claim,
                    "maximum storage usage per PersistentVolumeClaim is 4Gi, but request is 5Gi");
        assert_says(RANGE("PersistentVolumeClaim", "\"min\":{\"storage\":\"6Gi\"}"),
                    HFD_QUOTA_CLAIMS, claim,
                    "minimum storage usage per PersistentVolumeClaim is 6Gi, but request is 5Gi");
}

static void the_work_for_a_pod_is_bounded(void **state) {
        struct hf__strbuf text = {0};

        hf__strbuf_puts(&text, "{\"spec\":{\"limits\":[{\"type\":\"Container\",\"max\":{");
        for (unsigned i = 0; i <= HFD_LIMIT_RANGE_PAIRS_MAX / 2; i++)
                hf__strbuf_printf(&text, "%s\"a.io/%u\":\"1\"", i ? "," : "", i);
        hf__strbuf_puts(&text, "}}]}}");
        struct hf__json *range = parse(text.data), *one = parse(POD("{\"name\":\"a\"}", "")),
                        *two = parse(POD("{\"name\":\"a\"}", "{\"name\":\"i\"}"));
        assert_false(hfd_limit_range_is_too_much(range, one));
        assert_true(hfd_limit_range_is_too_much(range, two));
        hf__strbuf_done(&text);
        hf__json_free(range);
        hf__json_free(one);
        hf__json_free(two);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(containers_get_what_they_leave_out),
                cmocka_unit_test(pods_are_told_which_bounds_they_break),
                cmocka_unit_test(claims_have_bounds),
                cmocka_unit_test(the_work_for_a_pod_is_bounded),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
