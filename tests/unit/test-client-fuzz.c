/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random bytes, and valid texts with random damage, for the parsers of foreign input: fences,
 * Status bodies, watch lines, kubeconfigs. No parser may crash or read outside its input (the
 * sanitizers check this), and the invariants hold.
 */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <holdfast/fence.h>

#include "base/base64.h"
#include "client/json_span.h"
#include "client/kubeconfig.h"
#include "client/status.h"

#define ROUNDS 4000
#define MAX    512

static unsigned seed;

/*
 * A damaged copy in memory of exactly n bytes, so that the sanitizers detect a read past its end.
 */
static char *damage(const char *good, size_t *ret_n) {
        static const char spice[] = "\"\\{}[]:,;/\n\r\t -&*!|>%#'\0=";
        size_t n = good && rand_r(&seed) % 8 ? strlen(good) : (size_t)rand_r(&seed) % MAX;
        char *data = malloc(n ? n : 1);

        assert_non_null(data);
        for (size_t i = 0; i < n; i++)
                data[i] = good && i < strlen(good) ? good[i] : (char)rand_r(&seed);
        for (int hits = rand_r(&seed) % 4; n > 0 && hits > 0; hits--)
                data[(size_t)rand_r(&seed) % n] =
                        rand_r(&seed) % 2 ? (char)rand_r(&seed)
                                          : spice[(size_t)rand_r(&seed) % sizeof spice];
        *ret_n = n > 0 && rand_r(&seed) % 4 == 0 ? (size_t)rand_r(&seed) % n : n;
        char *exact = malloc(*ret_n ? *ret_n : 1);
        assert_non_null(exact);
        memcpy(exact, data, *ret_n);
        free(data);
        return exact;
}

static void fuzz_fence(const char *data, size_t n) {
        struct hf_fence fence;
        char text[1024];

        if (hf_fence_parse(data, n, &fence) != 0)
                return;
        /* An accepted value has only one spelling. */
        assert_int_equal(hf_fence_format(&fence, text, sizeof text), (int)n);
        assert_memory_equal(text, data, n);
}

static void fuzz_status(const char *data, size_t n) {
        const struct hf__status_context context = {.is_write = rand_r(&seed) % 2, .what = "GET x"};
        struct hf_status status;
        int error = hf__status_from_response(rand_r(&seed) % 700, data, n, &context, &status);

        assert_true(error > 0 && error < _HF_E_MAX);
        assert_int_equal(error, status.error);
        assert_true(status.message[0] != '\0');
        for (const char *c = status.message; *c; c++)
                assert_true((unsigned char)*c >= 0x20 && *c != 0x7f);
}

static void fuzz_span(const char *data, size_t n) {
        struct hf__span text = {data, n}, value, element;
        size_t at = 0;

        if (!hf__span_member(text, "items", &value))
                return;
        assert_true(value.data >= data && value.data + value.n <= data + n);
        while (hf__span_next(value, &at, &element) > 0)
                assert_true(element.n > 0 && element.data >= value.data &&
                            element.data + element.n <= value.data + value.n);
}

static void fuzz_kubeconfig(const char *data, size_t n) {
        struct hf__kubeconfig config;
        struct hf_status status = {0};
        int r = hf__kubeconfig_parse(data, n, "/nonexistent", "f", &config, &status);

        if (r == 0)
                hf__kubeconfig_done(&config);
        else
                assert_true(status.message[0] != '\0');
}

static void fuzz_base64(const char *data, size_t n) {
        char *bytes = NULL;
        size_t n_bytes = 0;

        if (hf__base64_decode(data, n, &bytes, &n_bytes) == 0)
                assert_true(n_bytes <= n);
        free(bytes);
}

static void run(const char *good, void (*fuzz)(const char *data, size_t n), int rounds) {
        for (int i = 0; i < rounds; i++) {
                size_t n;
                char *data = damage(i % 4 ? good : NULL, &n);
                fuzz(data, n);
                free(data);
        }
}

static void test_damaged_fences_do_no_harm(void **state) {
        run("kube-system/lease-1;1234567;host_0;x", fuzz_fence, ROUNDS);
}

static void test_damaged_status_bodies_do_no_harm(void **state) {
        run("{\"kind\":\"Status\",\"message\":\"m "
            "\\u00e4\",\"reason\":\"Conflict\",\"details\":{\"causes\":[{\"reason\":"
            "\"StaleLeaderTerm\"}]"
            ",\"retryAfterSeconds\":4},\"code\":409}",
            fuzz_status, ROUNDS);
}

static void test_damaged_json_does_no_harm(void **state) {
        run("{\"metadata\":{\"a\":\"\\\"\"},\"items\":[{\"metadata\":{}},[1,2],\"x\",true]}",
            fuzz_span, ROUNDS);
}

static void test_damaged_kubeconfigs_do_no_harm(void **state) {
        run("current-context: m\ncontexts:\n- name: m\n  context: {cluster: c, user: "
            "u}\nclusters:\n- name: c\n  cluster:\n"
            "    server: https://h\n    certificate-authority-data: QQ==\nusers:\n- name: u\n  "
            "user: {token: \"t\"}\n",
            fuzz_kubeconfig, ROUNDS / 2);
}

static void test_damaged_base64_does_no_harm(void **state) {
        run("QUJDREVGRw==\n", fuzz_base64, ROUNDS);
}

int main(void) {
        const char *given = getenv("HF_SEED");
        seed = given ? (unsigned)strtoul(given, NULL, 10) : 20261121u;
        print_message("HF_SEED=%u\n", seed);
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_damaged_fences_do_no_harm),
                cmocka_unit_test(test_damaged_status_bodies_do_no_harm),
                cmocka_unit_test(test_damaged_json_does_no_harm),
                cmocka_unit_test(test_damaged_kubeconfigs_do_no_harm),
                cmocka_unit_test(test_damaged_base64_does_no_harm),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
