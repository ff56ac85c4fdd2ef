/* SPDX-License-Identifier: Apache-2.0 */
/* `holdfastd status`: from the responses of servers to the printed text. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "server/status/model.h"
#include "server/status/render.h"
#include "server/status/render_json.h"

#define NOW INT64_C(1795225204000000) /* 2026-11-21T01:40:04Z */

#define ID_A "vm_a_0badcafe_3f2c000000000000"
#define ID_B "vm_b_0badcafe_91d0000000000000"

#define IDENTITY_LEASE(name, id, port, renewed)                                                    \
        "{\"metadata\":{\"name\":\"holdfastd-" name                                                \
        "\",\"namespace\":\"kube-system\",\"labels\":{\"apiserver.kubernetes.io/identity\":"       \
        "\"holdfastd\"},\"annotations\":{\"holdfast.dev/endpoint\":\"https://127.0.0.1:" port      \
        "\",\"holdfast.dev/instance\":\"" name                                                     \
        "\",\"holdfast.dev/host\":\"vm\"}},\"spec\":{\"holderIdentity\":\"" id                     \
        "\",\"renewTime\":\"" renewed "\"}}"
#define ENTRY(at, holder, previous, cause, gap)                                                    \
        "{\\\"at\\\":\\\"" at "\\\",\\\"holder\\\":\\\"" holder                                    \
        "\\\",\\\"previous\\\":\\\"" previous "\\\",\\\"cause\\\":\\\"" cause                      \
        "\\\",\\\"gapMs\\\":" gap "}"
#define LED                                                                                        \
        "{\"metadata\":{\"name\":\"holdfast-controllers\",\"namespace\":\"kube-system\","          \
        "\"annotations\":{\"holdfast.dev/transitions\":"                                           \
        "\"[" ENTRY("2026-11-21T01:30:00.000000Z", ID_A, "", "created",                            \
                    "0") "," ENTRY("2026-11-21T01:37:00.000000Z", ID_B, ID_A, "released",          \
                                   "8") "]\"}},\"spec\":{\"holderIdentity\":\"" ID_B               \
                                        "\",\"leaseDurationSeconds\":15,\"acquireTime\":\"2026-"   \
                                        "11-21T01:37:00.000000Z\",\"renewTime\":"                  \
                                        "\"2026-11-21T01:40:03.000000Z\","                         \
                                        "\"leaseTransitions\":1}}"
#define LIST(items) "{\"metadata\":{\"resourceVersion\":\"77\"},\"items\":[" items "]}"

static const char whole[] = LIST(
        IDENTITY_LEASE("b", ID_B, "7002", "2026-11-21T01:40:02.000000Z") "," LED "," IDENTITY_LEASE(
                "a", ID_A, "7001", "2026-11-21T01:39:55.000000Z"));

static int setup(void **state) {
        return (*state = calloc(1, sizeof(struct hfd_status_model))) == NULL;
}

static int teardown(void **state) {
        free(*state);
        return 0;
}

static struct hfd_status_model *take(void **state, const char *list) {
        struct hfd_status_model *picture = *state;
        assert_int_equal(hfd_status_model_set_leases(picture, list, strlen(list)), 0);
        return picture;
}

static void response(struct hfd_status_instance *instance, const char *body) {
        hfd_status_model_set_response(instance, 200, body, strlen(body));
}

static void set_both_states(struct hfd_status_model *picture) {
        response(&picture->instances[0],
                 "{\"identity\":\"" ID_A "\",\"state\":\"following\",\"lease\":\"kube-system/"
                 "holdfast-controllers\",\"term\":0}");
        response(&picture->instances[1],
                 "{\"identity\":\"" ID_B "\",\"state\":\"leading\",\"lease\":\"kube-system/"
                 "holdfast-controllers\",\"term\":41}");
}

static void test_ages_are_written_as_kubectl_writes_them(void **state) {
        static const struct {
                int64_t seconds;
                const char *text;
        } ages[] = {{-5, "0s"},
                    {0, "0s"},
                    {119, "119s"},
                    {120, "2m"},
                    {184, "3m4s"},
                    {600, "10m"},
                    {10799, "179m"},
                    {10800, "3h"},
                    {11100, "3h5m"},
                    {28800, "8h"},
                    {172799, "47h"},
                    {172800, "2d"},
                    {180000, "2d2h"},
                    {691200, "8d"},
                    {63072000, "2y"},
                    {63158400, "2y1d"},
                    {INT64_C(315360000), "10y"}};
        char text[HFD_STATUS_AGE_MAX];

        for (size_t i = 0; i < sizeof ages / sizeof *ages; i++) {
                hfd_status_render_age(ages[i].seconds * 1000000, text);
                assert_string_equal(text, ages[i].text);
        }
        hfd_status_render_age(INT64_MAX, text); /* no overflow */
}

static void test_identities_are_shortened(void **state) {
        char text[HFD_STATUS_IDENTITY_MAX];

        hfd_status_render_identity(ID_A, text);
        assert_string_equal(text, "a/3f2c");
        hfd_status_render_identity("host_0f4d3b1c-uuid", text);
        assert_string_equal(text, "host_0f4d3b1c-uuid");
        hfd_status_render_identity("", text);
        assert_string_equal(text, "");
        hfd_status_render_identity("0123456789012345678901234567890123456789x", text);
        assert_string_equal(text, "012345678901234567890123456789012345678~");
}

static void test_a_full_report_is_rendered(void **state) {
        struct hfd_status_model *picture = take(state, whole);
        struct hf__strbuf out = {0};

        snprintf(picture->server, sizeof picture->server, "https://127.0.0.1:7001");
        set_both_states(picture);
        hfd_status_render(picture, NOW, &out);
        assert_int_equal(out.error, 0);
        assert_string_equal(
                out.data,
                "https://127.0.0.1:7001  2026-11-21T01:40:04Z\n"
                "\n"
                "INSTANCE  HOST  ENDPOINT                STATE      SEEN\n"
                "a/3f2c    vm    https://127.0.0.1:7001  following  9s ago\n"
                "b/91d0    vm    https://127.0.0.1:7002  leading    2s ago\n"
                "\n"
                "LEASE                             HOLDER  SINCE  TERM  TRANSITIONS  RENEWED\n"
                "kube-system/holdfast-controllers  b/91d0  3m4s   41    1            1s ago\n"
                "\n"
                "HAND-OVER  FROM -> TO        CAUSE     GAP\n"
                "3m4s ago   a/3f2c -> b/91d0  released  8ms\n"
                "10m ago    nobody -> a/3f2c  created   -\n");
        hf__strbuf_done(&out);
}

static void test_a_report_is_rendered_as_json(void **state) {
        struct hfd_status_model *picture = take(state, whole);
        struct hf__strbuf out = {0};

        snprintf(picture->server, sizeof picture->server, "https://127.0.0.1:7001");
        response(&picture->instances[1],
                 "{\"identity\":\"" ID_B "\",\"state\":\"leading\",\"lease\":\"kube-system/"
                 "holdfast-controllers\",\"term\":41}");
        hfd_status_render_json(picture, NOW, &out);
        assert_int_equal(out.error, 0);
        assert_string_equal(
                out.data,
                "{\"server\":\"https://127.0.0.1:7001\",\"time\":\"2026-11-21T01:40:04.000000Z\","
                "\"readError\":null,\"instances\":["
                "{\"identity\":\"" ID_A "\",\"instance\":\"a\",\"host\":\"vm\","
                "\"endpoint\":\"https://127.0.0.1:7001\",\"state\":\"unreachable\","
                "\"seen\":\"2026-11-21T01:39:55.000000Z\",\"lease\":null,\"term\":null},"
                "{\"identity\":\"" ID_B "\",\"instance\":\"b\",\"host\":\"vm\","
                "\"endpoint\":\"https://127.0.0.1:7002\",\"state\":\"leading\","
                "\"seen\":\"2026-11-21T01:40:02.000000Z\","
                "\"lease\":\"kube-system/holdfast-controllers\",\"term\":41}],"
                "\"omittedInstances\":0,\"leases\":["
                "{\"lease\":\"kube-system/holdfast-controllers\",\"holder\":\"" ID_B "\","
                "\"silent\":false,\"acquired\":\"2026-11-21T01:37:00.000000Z\","
                "\"renewed\":\"2026-11-21T01:40:03.000000Z\",\"durationSeconds\":15,\"term\":41,"
                "\"transitions\":1,\"handOvers\":["
                "{\"at\":\"2026-11-21T01:37:00.000000Z\",\"from\":\"" ID_A "\",\"to\":\"" ID_B "\","
                "\"cause\":\"released\",\"gapMilliseconds\":8},"
                "{\"at\":\"2026-11-21T01:30:00.000000Z\",\"from\":null,\"to\":\"" ID_A "\","
                "\"cause\":\"created\",\"gapMilliseconds\":null}]}],\"omittedLeases\":0}\n");
        hf__strbuf_done(&out);
}

static void test_json_says_when_a_holder_is_silent_and_a_read_failed(void **state) {
        struct hfd_status_model *picture = take(state, whole);
        struct hf__strbuf out = {0};

        hfd_status_model_set_read_error(picture, "no \"server\" responds");
        hfd_status_render_json(picture, NOW + INT64_C(60000000), &out);
        assert_non_null(strstr(out.data, "\"readError\":\"no \\\"server\\\" responds\""));
        assert_non_null(strstr(out.data, "\"silent\":true"));
        hf__strbuf_done(&out);
}

static void test_a_report_without_instances_is_rendered(void **state) {
        struct hfd_status_model *picture = take(state, LIST(""));
        struct hf__strbuf out = {0};

        hfd_status_render(picture, NOW, &out);
        assert_non_null(strstr(out.data, "No instances"));
        assert_non_null(strstr(out.data, "Nothing is led"));
        hf__strbuf_done(&out);
}

static void test_a_silent_server_is_reported_unreachable(void **state) {
        struct hfd_status_model *picture = take(state, whole);
        struct hfd_status_instance *b = &picture->instances[1];

        assert_string_equal(b->state, "unreachable");
        set_both_states(picture);
        take(state, whole); /* read again: the same incarnations */
        assert_string_equal(b->state, "leading");
        assert_int_equal(hfd_status_model_term(picture, &picture->leases[0]), 41);
        hfd_status_model_set_response(b, 0, "", 0);
        assert_string_equal(b->state, "unreachable");
        /* only its holder knows it */
        assert_int_equal(hfd_status_model_term(picture, &picture->leases[0]), 0);
        hfd_status_model_set_response(b, 403, "", 0);
        assert_string_equal(b->state, "denied");
        hfd_status_model_set_response(b, HFD_STATUS_OTHER_CA, "", 0);
        assert_string_equal(b->state, "certificate of another CA");
        hfd_status_model_set_response(b, 404, "x", 1);
        assert_string_equal(b->state, "unknown");
        response(b, "not json");
        assert_string_equal(b->state, "unknown");
}

static void test_an_address_with_another_incarnation_is_gone(void **state) {
        struct hfd_status_model *picture = take(state, whole);

        response(&picture->instances[1],
                 "{\"identity\":\"" ID_A "\",\"state\":\"leading\",\"lease\":\"kube-system/"
                 "holdfast-controllers\",\"term\":9}");
        assert_string_equal(picture->instances[1].state, "gone");
        assert_int_equal(hfd_status_model_term(picture, &picture->leases[0]), 0);
}

static void test_a_holder_is_silent_only_after_a_known_duration(void **state) {
        struct hfd_status_lease lease = {.holder = "x", .renew_us = 1000000};
        (void)state;

        assert_false(hfd_status_model_is_silent(&lease, INT64_C(1000) * 1000000));
        lease.duration_s = 15;
        assert_true(hfd_status_model_is_silent(&lease, INT64_C(1000) * 1000000));
        assert_false(hfd_status_model_is_silent(&lease, INT64_C(16) * 1000000));
}

static void test_a_silent_holder_and_problems_are_reported(void **state) {
        struct hfd_status_model *picture = take(state, whole);
        struct hf__strbuf out = {0};

        snprintf(picture->read_error, sizeof picture->read_error, "connection refused");
        hfd_status_render(picture, NOW + 60 * INT64_C(1000000), &out);
        assert_non_null(strstr(out.data, "not fresh: connection refused\n"));
        assert_non_null(strstr(out.data, "b/91d0 (silent)"));
        hf__strbuf_done(&out);
}

static void test_elapsed_time_alone_is_no_change(void **state) {
        struct hfd_status_model *picture = take(state, whole);
        struct hf__strbuf first = {0}, second = {0};

        set_both_states(picture);
        hfd_status_render_facts(picture, &first);
        picture->leases[0].renew_us += 5000000;
        picture->instances[0].renew_us += 5000000;
        hfd_status_render_facts(picture, &second);
        assert_string_equal(first.data, second.data);
        hf__strbuf_reset(&second);
        hfd_status_model_set_response(&picture->instances[0], 0, "", 0);
        hfd_status_render_facts(picture, &second);
        assert_string_not_equal(first.data, second.data);
        hf__strbuf_done(&first);
        hf__strbuf_done(&second);
}

static void test_leases_of_other_programs_are_shown_without_control_characters(void **state) {
        struct hfd_status_model *picture =
                take(state,
                     LIST("{\"metadata\":{\"name\":\"n1\",\"namespace\":\"kube-node-lease\"},"
                          "\"spec\":{\"holderIdentity\":\"n1\"}},"
                          "{\"metadata\":{\"name\":\"apiserver-x\",\"namespace\":\"kube-system\","
                          "\"labels\":{\"apiserver.kubernetes.io/"
                          "identity\":\"kube-apiserver\"}},\"spec\":{\"holderIdentity\":\"x\"}},"
                          "{\"metadata\":{\"name\":\"kcm\",\"namespace\":\"kube-system\","
                          "\"annotations\":{\"holdfast.dev/"
                          "transitions\":\"[" ENTRY("2026-11-21T01:30:00.000000Z", "\\\\u001b[J",
                                                    "\\\\u009b", "created",
                                                    "0") "]\"}},\"spec\":{\"holderIdentity\":"
                                                         "\"k\\u001b[2Jm\"}},"
                                                         "7,{}"));
        assert_int_equal(picture->n_instances, 0);
        assert_int_equal(picture->n_leases, 1);
        assert_string_equal(picture->leases[0].label, "kube-system/kcm");
        /* so that it cannot control the terminal */
        assert_string_equal(picture->leases[0].holder, "k?[2Jm");
        assert_int_equal(picture->leases[0].n_history, 1);
        assert_string_equal(picture->leases[0].history[0].holder, "?[J");
        assert_string_equal(picture->leases[0].history[0].previous, "??"); /* U+009B in UTF-8 */
}

static void test_a_message_of_a_server_is_shown_without_control_characters(void **state) {
        struct hfd_status_model *picture = *state;
        struct hf__strbuf text = {0};

        hfd_status_model_set_read_error(picture, "refused\033[2J by \xc3\xa9");
        hfd_status_render(picture, NOW, &text);
        assert_non_null(strstr(text.data, "not fresh: refused?[2J by ??\n"));
        hf__strbuf_done(&text);
}

static void test_leases_beyond_the_limit_are_counted(void **state) {
        struct hf__strbuf list = {0}, out = {0};

        hf__strbuf_puts(&list, "{\"items\":[");
        for (int i = 0; i < HFD_STATUS_MAX_LEASES + 3; i++)
                hf__strbuf_printf(&list, "%s{\"metadata\":{\"name\":\"l%d\",\"namespace\":\"n\"}}",
                                  i ? "," : "", i);
        hf__strbuf_puts(&list, "]}");
        struct hfd_status_model *picture = take(state, list.data);
        assert_int_equal(picture->n_leases, HFD_STATUS_MAX_LEASES);
        hfd_status_render(picture, NOW, &out);
        assert_non_null(strstr(out.data, "... and 3 more\n"));
        assert_non_null(strstr(out.data, "nobody"));
        hf__strbuf_done(&list);
        hf__strbuf_done(&out);
}

/* Whoever may write Leases in some namespace neither invents instances nor hides the real ones. */
static void test_only_leases_of_the_system_are_instances(void **state) {
        struct hf__strbuf list = {0};

        hf__strbuf_puts(&list, "{\"items\":[");
        for (int i = 0; i < HFD_STATUS_MAX_LEASES + 3; i++)
                hf__strbuf_printf(&list,
                                  "{\"metadata\":{\"name\":\"i%d\",\"namespace\":\"a\","
                                  "\"labels\":{\"apiserver.kubernetes.io/identity\":\"holdfastd\"},"
                                  "\"annotations\":{\"holdfast.dev/endpoint\":\"https://x\"}}},"
                                  "{\"metadata\":{\"name\":\"l%d\",\"namespace\":\"a\"}},",
                                  i, i);
        hf__strbuf_puts(&list, "{\"metadata\":{\"name\":\"r\",\"namespace\":\"kube-system\","
                               "\"labels\":{\"apiserver.kubernetes.io/identity\":\"holdfastd\"}}},"
                               "{\"metadata\":{\"name\":\"l\",\"namespace\":\"kube-system\"}}]}");
        struct hfd_status_model *picture = take(state, list.data);
        assert_int_equal(picture->n_instances, 1);
        assert_string_equal(picture->instances[0].endpoint, "");
        assert_int_equal(picture->n_leases, HFD_STATUS_MAX_LEASES);
        assert_string_equal(picture->leases[HFD_STATUS_MAX_LEASES - 1].label, "kube-system/l");
        hf__strbuf_done(&list);
}

static void test_a_failed_list_leaves_the_rest_of_the_report(void **state) {
        struct hfd_status_model *picture = take(state, whole);

        assert_int_equal(hfd_status_model_set_leases(picture, "x", 1), HF_E_INVALID);
        assert_int_equal(hfd_status_model_set_leases(picture, "{\"kind\":\"Status\"}", 17),
                         HF_E_INVALID);
        assert_int_equal(picture->n_instances, 2);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_ages_are_written_as_kubectl_writes_them),
                cmocka_unit_test(test_identities_are_shortened),
                cmocka_unit_test_setup_teardown(test_a_full_report_is_rendered, setup, teardown),
                cmocka_unit_test_setup_teardown(test_a_report_is_rendered_as_json, setup, teardown),
                cmocka_unit_test_setup_teardown(
                        test_json_says_when_a_holder_is_silent_and_a_read_failed, setup, teardown),
                cmocka_unit_test_setup_teardown(test_a_report_without_instances_is_rendered, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(test_a_silent_server_is_reported_unreachable, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(test_an_address_with_another_incarnation_is_gone,
                                                setup, teardown),
                cmocka_unit_test(test_a_holder_is_silent_only_after_a_known_duration),
                cmocka_unit_test_setup_teardown(test_a_silent_holder_and_problems_are_reported,
                                                setup, teardown),
                cmocka_unit_test_setup_teardown(test_elapsed_time_alone_is_no_change, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(
                        test_leases_of_other_programs_are_shown_without_control_characters, setup,
                        teardown),
                cmocka_unit_test_setup_teardown(
                        test_a_message_of_a_server_is_shown_without_control_characters, setup,
                        teardown),
                cmocka_unit_test_setup_teardown(test_leases_beyond_the_limit_are_counted, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(test_only_leases_of_the_system_are_instances, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(test_a_failed_list_leaves_the_rest_of_the_report,
                                                setup, teardown),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
