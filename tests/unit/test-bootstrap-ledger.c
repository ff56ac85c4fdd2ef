/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ledger as text: it survives the round trip with foreign data, and a broken ledger is named.
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

#include <cmocka.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "bootstrap/content.h"
#include "bootstrap/ledger.h"
#include "bootstrap/manifest.h"
#include "bootstrap/step_body.h"

static const char *const phases[] = {"phase-0", "phase-1"};

static struct hf__json *parse(const char *text) {
        struct hf__json *json;
        assert_int_equal(hf__json_parse(text, strlen(text), &json, NULL), 0);
        return json;
}

static struct hf__ledger_entry entry(const char *step, char message) {
        struct hf__ledger_entry entry = {.step = (char *)step,
                                         .phase = "phase-0",
                                         .outcome = HF__OUTCOME_CREATED,
                                         .version = "1.0.0",
                                         .at = "2026-01-01T00:00:00Z"};
        memset(entry.hash, message, HF__HASH_DIGITS);
        memset(entry.applied, message, HF__HASH_DIGITS);
        return entry;
}

static void write_and_read(const struct hf__ledger *ledger, const struct hf__json *object,
                           struct hf__ledger *ret_ledger) {
        struct hf__strbuf text = {0};
        struct hf__json *back;

        assert_int_equal(hf__ledger_write(ledger, object, "kube-system", "ledger", &text), 0);
        back = parse(text.data);
        assert_string_equal(hf__json_string(back, "metadata.namespace"), "kube-system");
        assert_string_equal(hf__json_string(back, "metadata.name"), "ledger");
        assert_int_equal(hf__ledger_read(back, phases, 2, ret_ledger, NULL), 0);
        hf__json_free(back);
        hf__strbuf_done(&text);
}

static void test_a_ledger_survives_the_round_trip(void **state) {
        struct hf__ledger ledger = {0}, back;
        struct hf__ledger_entry a = entry("ConfigMap/default/a", 'a'),
                                a2 = entry("ConfigMap/default/a", 'c'),
                                b = entry("x \"quoted\"\nstep", 'b');

        a2.outcome = HF__OUTCOME_KEPT;
        a2.applied[0] = '\0';
        assert_int_equal(hf__ledger_add(&ledger, &a), 0);
        assert_int_equal(hf__ledger_add(&ledger, &b), 0);
        assert_int_equal(hf__ledger_add(&ledger, &a2), 0);
        assert_int_equal(hf__ledger_complete(&ledger, "phase-1", "1.0.0-rc.1",
                                             "2026-01-01T00:00:00Z"),
                         0);
        write_and_read(&ledger, NULL, &back);
        assert_int_equal(back.n_entries, 2);
        const struct hf__ledger_entry *found = hf__ledger_find(&back, "ConfigMap/default/a");
        assert_non_null(found);
        assert_int_equal(found->outcome, HF__OUTCOME_KEPT);
        assert_string_equal(found->hash, a2.hash);
        assert_string_equal(found->applied, "");
        assert_int_equal(found->n_superseded, 1);
        assert_string_equal(found->superseded[0], a.hash);
        assert_non_null(hf__ledger_find(&back, b.step));
        assert_null(hf__ledger_find_completed(&back, "phase-0"));
        assert_string_equal(hf__ledger_find_completed(&back, "phase-1")->version, "1.0.0-rc.1");
        assert_string_equal(hf__ledger_find_completed(&back, "phase-1")->at,
                            "2026-01-01T00:00:00Z");
        hf__ledger_done(&ledger);
        hf__ledger_done(&back);
}

static void test_foreign_data_survives(void **state) {
        struct hf__json *object = parse("{\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"ledger\","
                                        "\"namespace\":\"kube-system\",\"labels\":{\"a\":\"b\"},"
                                        "\"resourceVersion\":\"7\"},\"data\":{\"format\":\"1\","
                                        "\"note\":\"mine\",\"other.completed\":\"x\"}}");
        struct hf__ledger ledger = {0};
        struct hf__strbuf text = {0};
        struct hf__ledger_entry a = entry("a", 'a');

        assert_int_equal(hf__ledger_add(&ledger, &a), 0);
        assert_int_equal(hf__ledger_write(&ledger, object, "kube-system", "ledger", &text), 0);
        assert_non_null(strstr(text.data, "\"note\":\"mine\""));
        assert_non_null(strstr(text.data, "\"other.completed\":\"x\""));
        assert_non_null(strstr(text.data, "\"resourceVersion\":\"7\""));
        assert_non_null(strstr(text.data, "\"labels\":{\"a\":\"b\"}"));
        hf__strbuf_done(&text);
        hf__ledger_done(&ledger);
        hf__json_free(object);
}

/* Readiness depends only on the completed phases, which every format has. */
static void test_completed_phases_are_read_from_a_newer_format(void **state) {
        struct hf__json *object = parse("{\"data\":{\"format\":\"2\",\"phase-0.completed\":\"9.0.0 "
                                        "then\",\"steps\":\"in another form\"}}");
        struct hf__ledger ledger;

        assert_int_equal(hf__ledger_read(object, phases, 2, &ledger, NULL), 0);
        assert_true(ledger.newer_format);
        assert_non_null(hf__ledger_find_completed(&ledger, "phase-0"));
        hf__ledger_done(&ledger);
        hf__json_free(object);
}

static void test_a_broken_ledger_is_named(void **state) {
        static const char *const cases[][2] = {
                {"{\"data\":{}}", "data.format is missing"},
                {"{}", "data.format is missing"},
                {"{\"data\":{\"format\":\"1\",\"steps\":\"\\n{\"}}",
                 "data.steps, line 2: the record is not JSON"},
                {"{\"data\":{\"format\":\"1\",\"steps\":\"{}\"}}",
                 "data.steps, line 1: the record has no step"},
                {"{\"data\":{\"format\":\"1\",\"steps\":\"{\\\"step\\\":\\\"a\\\",\\\"hash\\\":"
                 "\\\"XY\\\"}\"}}",
                 "data.steps, line 1: the record has no usable hash"},
                {"{\"data\":{\"format\":\"1\",\"steps\":\"{\\\"step\\\":\\\"a\\\",\\\"hash\\\":"
                 "\\\"00000000000000000000000000000000\\\"}\"}"
                 "}",
                 "data.steps, line 1: the record has no usable version"},
                {"{\"data\":{\"format\":\"1\",\"steps\":\"{\\\"step\\\":\\\"a\\\",\\\"version\\\":"
                 "\\\"1\\\",\\\"hash\\\":"
                 "\\\"00000000000000000000000000000000\\\",\\\"outcome\\\":\\\"eaten\\\"}\"}}",
                 "data.steps, line 1: the record has no known outcome"},
        };

        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
                struct hf__json *object = parse(cases[i][0]);
                struct hf_status status = {0};
                struct hf__ledger ledger;
                assert_int_equal(hf__ledger_read(object, phases, 2, &ledger, &status),
                                 HF_E_INVALID);
                assert_string_equal(status.message, cases[i][1]);
                hf__ledger_done(&ledger);
                hf__json_free(object);
        }
}

#define ZEROS "00000000000000000000000000000000"
#define LINE(more)                                                                                 \
        "{\\\"step\\\":\\\"a\\\",\\\"version\\\":\\\"1\\\",\\\"outcome\\\":\\\"kept\\\"," more "}"
#define HASH(value) "\\\"hash\\\":\\\"" value "\\\""

/* One record that cannot be read makes the whole ledger unreadable: its step would be done
 * again. */
static void test_a_record_that_is_not_as_we_write_it_is_refused(void **state) {
        static const struct {
                const char *lines;
                const char *wrong; /* NULL = nothing */
        } cases[] = {
                {LINE(HASH(ZEROS)), NULL},
                {LINE(HASH(ZEROS)) "\\n\\n", NULL},
                {LINE(HASH(ZEROS) ",\\\"applied\\\":\\\"\\\""), NULL},
                {LINE(HASH(ZEROS) ",\\\"superseded\\\":[\\\"" ZEROS "\\\"]"), NULL},
                {LINE(HASH(ZEROS)) "\\n" LINE(HASH(ZEROS)), "has the step of an earlier one"},
                {LINE(HASH("")), "has no usable hash"},
                {LINE(HASH("0")), "has no usable hash"},
                {LINE(HASH(ZEROS "0")), "has no usable hash"},
                {LINE(HASH("0000000000000000000000000000000G")), "has no usable hash"},
                {LINE(HASH("0000000000000000000000000000000A")), "has no usable hash"},
                {LINE("\\\"hash\\\":7"), "has no usable hash"},
                {LINE(HASH(ZEROS) ",\\\"applied\\\":\\\"0\\\""), "has no usable hash"},
                {LINE(HASH(ZEROS) ",\\\"applied\\\":[]"), "has no usable hash"},
                {LINE(HASH(ZEROS) ",\\\"superseded\\\":[7]"), "has no usable hash"},
                {LINE(HASH(ZEROS) ",\\\"superseded\\\":[\\\"\\\"]"), "has no usable hash"},
                {LINE(HASH(ZEROS) ",\\\"phase\\\":7"), "has no usable phase or time"},
                {LINE(HASH(ZEROS) ",\\\"at\\\":7"), "has no usable phase or time"},
                {LINE(HASH(ZEROS) ",\\\"phase\\\":\\\"" ZEROS ZEROS "\\\""),
                 "has no usable phase or time"},
        };

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                char text[1024];
                (void)snprintf(text, sizeof text, "{\"data\":{\"format\":\"1\",\"steps\":\"%s\"}}",
                               cases[i].lines);
                struct hf__json *object = parse(text);
                struct hf_status status = {0};
                struct hf__ledger ledger;
                int r = hf__ledger_read(object, phases, 2, &ledger, &status);
                if (r != (cases[i].wrong ? HF_E_INVALID : 0) ||
                    (cases[i].wrong && !strstr(status.message, cases[i].wrong)))
                        fail_msg("%s: %d: %s", cases[i].lines, r, status.message);
                hf__ledger_done(&ledger);
                hf__json_free(object);
        }
}

static void test_a_record_keeps_all_its_members(void **state) {
        struct hf__ledger ledger = {0}, back;
        struct hf__ledger_entry a = entry("a", 'a');
        struct hf__strbuf text = {0};

        a.n_superseded = 1; /* ignored for a new entry: only a replacement supersedes hashes */
        assert_int_equal(hf__ledger_add(&ledger, &a), 0);
        write_and_read(&ledger, NULL, &back);
        assert_string_equal(back.entries[0].phase, "phase-0");
        assert_string_equal(back.entries[0].at, "2026-01-01T00:00:00Z");
        assert_string_equal(back.entries[0].applied, a.applied);
        assert_string_equal(back.entries[0].version, "1.0.0");
        assert_int_equal(back.entries[0].n_superseded, 0);
        assert_int_equal(hf__ledger_write(&ledger, NULL, "n", "l", &text), 0);
        assert_non_null(strstr(text.data, "\"kind\":\"ConfigMap\""));
        assert_non_null(strstr(text.data, "\"apiVersion\":\"v1\""));
        hf__strbuf_done(&text);
        hf__ledger_done(&back);
        hf__ledger_done(&ledger);
}

static void test_a_ledger_has_a_limit(void **state) {
        struct hf__ledger ledger = {0};
        struct hf__strbuf text = {0};
        static char step[600];
        char phase[] = "a";

        for (; phase[0] < 'a' + HF_BOOTSTRAP_PHASES_MAX; phase[0]++)
                assert_int_equal(hf__ledger_complete(&ledger, phase, "1", "now"), 0);
        assert_int_equal(hf__ledger_complete(&ledger, phase, "1", "now"), HF_E_TOO_LARGE);
        assert_int_equal(hf__ledger_complete(&ledger, "a", "2", "now"), 0);
        memset(step, 's', sizeof step - 1);
        for (int i = 0; i < 2 * HF_BOOTSTRAP_STEPS_MAX; i++) {
                (void)snprintf(step, 8, "%07d", i);
                step[7] = 's';
                struct hf__ledger_entry one = entry(step, 'a');
                assert_int_equal(hf__ledger_add(&ledger, &one), 0);
        }
        assert_int_equal(hf__ledger_write(&ledger, NULL, "n", "l", &text), HF_E_TOO_LARGE);
        hf__strbuf_done(&text);
        hf__ledger_done(&ledger);
}

/* Users can write into the ConfigMap, so the number of records that are read is limited, too. */
static void test_the_number_of_records_is_limited(void **state) {
        struct hf__ledger ledger = {0}, back;
        struct hf_status status = {0};
        struct hf__strbuf text = {0};
        char step[8];

        for (int i = 0; i < HF__LEDGER_RECORDS_MAX; i++) {
                (void)snprintf(step, sizeof step, "%d", i);
                struct hf__ledger_entry one = entry(step, 'a');
                assert_int_equal(hf__ledger_add(&ledger, &one), 0);
        }
        write_and_read(&ledger, NULL, &back);
        assert_int_equal(back.n_entries, HF__LEDGER_RECORDS_MAX);
        hf__ledger_done(&back);
        /* What could not be read again is not added. A record may still be replaced. */
        struct hf__ledger_entry more = entry("more", 'a'), known = entry("7", 'b');
        assert_int_equal(hf__ledger_add(&ledger, &more), HF_E_TOO_LARGE);
        assert_int_equal(hf__ledger_add(&ledger, &known), 0);
        assert_int_equal(ledger.n_entries, HF__LEDGER_RECORDS_MAX);
        /* A user adds the line of one record more. */
        assert_int_equal(hf__ledger_write(&ledger, NULL, "n", "l", &text), 0);
        struct hf__json *object = parse(text.data);
        const char *steps = hf__json_text(hf__json_get(hf__json_get(object, "data"), "steps"));
        hf__strbuf_done(&text);
        hf__strbuf_printf(&text, "%.*s%s", (int)strcspn(steps, "\n") + 1, steps, steps);
        text.data[strlen("{\"step\":\"")] = 'x';
        assert_int_equal(hf__json_set_string(object, "data.steps", text.data), 0);
        assert_int_equal(hf__ledger_read(object, phases, 2, &back, &status), HF_E_TOO_LARGE);
        assert_string_equal(status.message, "data.steps has too many records");
        hf__ledger_done(&back);
        hf__json_free(object);
        hf__strbuf_done(&text);
        hf__ledger_done(&ledger);
}

static void test_a_removed_record_leaves_the_others_in_their_order(void **state) {
        struct hf__ledger ledger = {0};
        struct hf__ledger_entry a = entry("a", 'a'), b = entry("b", 'b'), c = entry("c", 'c');

        assert_int_equal(hf__ledger_add(&ledger, &a), 0);
        assert_int_equal(hf__ledger_add(&ledger, &b), 0);
        assert_int_equal(hf__ledger_add(&ledger, &c), 0);
        hf__ledger_remove(&ledger, 0);
        assert_int_equal(ledger.n_entries, 2);
        assert_string_equal(ledger.entries[0].step, "b");
        assert_string_equal(ledger.entries[0].hash, b.hash);
        assert_string_equal(ledger.entries[1].step, "c");
        hf__ledger_remove(&ledger, 1);
        assert_int_equal(ledger.n_entries, 1);
        assert_null(hf__ledger_find(&ledger, "c"));
        hf__ledger_done(&ledger);
}

/*
 * A completion that cannot be parsed counts: readiness must not depend on an edit by a user. It is
 * not overwritten.
 */
static void test_a_completion_without_a_version_counts(void **state) {
        struct hf__json *object =
                parse("{\"data\":{\"format\":\"1\",\"phase-0.completed\":\"by hand\"}}");
        struct hf__ledger ledger;
        struct hf__strbuf text = {0};

        assert_int_equal(hf__ledger_read(object, phases, 2, &ledger, NULL), 0);
        assert_string_equal(hf__ledger_find_completed(&ledger, "phase-0")->version, "");
        assert_int_equal(hf__ledger_write(&ledger, object, "n", "l", &text), 0);
        assert_non_null(strstr(text.data, "\"phase-0.completed\":\"by hand\""));
        hf__strbuf_done(&text);
        hf__ledger_done(&ledger);
        hf__json_free(object);
}

/* ---- contents ---- */

static void hash_text(const char *text, hf__hash hash) {
        struct hf__json *json = parse(text);
        assert_int_equal(hf__content_hash(json, hash), 0);
        hf__json_free(json);
}

static void test_a_hash_covers_the_content_only(void **state) {
        hf__hash a, b, c;

        hash_text("{\"a\":{\"x\":1,\"y\":[1,2,{\"p\":null,\"q\":true}]},\"b\":\"z\"}", a);
        hash_text("{\"b\":\"z\",\"a\":{\"y\":[1,2,{\"q\":true,\"p\":null}],\"x\":1}}", b);
        hash_text("{\"b\":\"z\",\"a\":{\"y\":[2,1,{\"q\":true,\"p\":null}],\"x\":1}}", c);
        assert_string_equal(a, b);
        assert_string_not_equal(a, c);
        hash_text("{\"a\":[[],1]}", a);
        hash_text("{\"a\":[[1]]}", b);
        assert_string_not_equal(a, b);
}

/*
 * The hashes are stored in ledgers and stamps, so every later version of the program must make the
 * same ones. Otherwise it would believe that a user has edited every object.
 */
static void test_hashes_are_the_same_in_each_version(void **state) {
        static const char *const cases[][2] = {
                {"{}", "44136fa355b3678a1146ad16f7e8649e"},
                {"{\"b\":[1,\"x\",{\"d\":null,\"c\":true}],\"a\":{\"e\":1.5}}",
                 "10a9cfd8887ba98893768a7f25b0221e"},
                {"{\"a\":[],\"b\":[[1],[2,3]],\"c\":{}}", "448bca1bb78cc2519a34bdbffb4fa06a"},
        };

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                hf__hash hash;
                hash_text(cases[i][0], hash);
                assert_string_equal(hash, cases[i][1]);
        }
}

static void inspect(const char *text, struct hf__content_seen *seen) {
        assert_int_equal(hf__content_inspect(text, strlen(text), seen), 0);
}

static void test_server_side_fields_are_not_content(void **state) {
        struct hf__content_seen a, b, c;

        inspect("{\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\"},\"data\":{\"k\":\"v\"}}",
                &a);
        inspect("{\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\",\"uid\":\"u\","
                "\"resourceVersion\":\"7\",\"creationTimestamp\":\"t\","
                "\"generation\":3,\"managedFields\":[],\"finalizers\":[\"f\"],\"ownerReferences\":["
                "],"
                "\"annotations\":{\"holdfast.dev/"
                "bootstrap\":\"0123456789abcdef0123456789abcdef\"}},\"data\":{\"k\":\"v\"},"
                "\"status\":{"
                "\"phase\":\"x\"}}",
                &b);
        inspect("{\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\",\"annotations\":{\"mine\":"
                "\"x\"}}"
                ",\"data\":{\"k\":\"v\"}}",
                &c);
        assert_string_equal(a.present, b.present);
        assert_string_equal(a.stamp, "");
        assert_string_equal(b.stamp, "0123456789abcdef0123456789abcdef");
        assert_string_not_equal(a.present, c.present);
        assert_int_equal(hf__content_inspect("[]", 2, &a), 0);
        assert_int_equal(hf__content_inspect("{", 1, &a), HF_E_INVALID);
        assert_int_equal(hf__content_inspect(NULL, 0, &a), HF_E_INVALID);
}

static void test_a_replacement_keeps_the_objects_identity(void **state) {
        static const char content[] = "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{"
                                      "\"name\":\"a\",\"labels\":{\"new\":"
                                      "\"1\"}},\"data\":{\"k\":\"2\"}}";
        static const char present[] = "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{"
                                      "\"name\":\"a\",\"uid\":\"u\",\"resourceVersion\":\"7\","
                                      "\"labels\":{\"old\":\"1\"},\"annotations\":{\"gone\":\"1\"},"
                                      "\"finalizers\":[\"f\"]},\"data\":{\"k\":\"1\"},"
                                      "\"binaryData\":{},\"status\":{\"s\":1}}";
        struct hf__step step = {.content = (char *)content,
                                .n_content = sizeof content - 1,
                                .hash = "0123456789abcdef0123456789abcdef"};
        struct hf__strbuf body = {0};

        assert_int_equal(hf__step_body_replacement(&step, present, sizeof present - 1, &body), 0);
        struct hf__json *json = parse(body.data);
        assert_string_equal(hf__json_string(json, "metadata.uid"), "u");
        assert_string_equal(hf__json_string(json, "metadata.resourceVersion"), "7");
        assert_int_equal(hf__json_count(hf__json_path(json, "metadata.finalizers")), 1);
        assert_non_null(hf__json_path(json, "status.s"));
        assert_string_equal(hf__json_string(json, "data.k"), "2");
        assert_string_equal(hf__json_string(json, "metadata.labels.new"), "1");
        assert_null(hf__json_path(json, "metadata.labels.old"));
        assert_null(hf__json_path(json, "metadata.annotations.gone"));
        assert_null(hf__json_get(json, "binaryData"));
        assert_string_equal(hf__json_text(hf__json_get(hf__json_path(json, "metadata.annotations"),
                                                       HF__STAMP)),
                            step.hash);
        hf__json_free(json);
        hf__strbuf_done(&body);
        assert_int_equal(hf__step_body_replacement(&step, "{}", 2, &body), HF_E_INVALID);
        hf__strbuf_done(&body);
        assert_int_equal(hf__step_body_new(&step, &body), 0);
        assert_non_null(strstr(body.data, HF__STAMP));
        hf__strbuf_done(&body);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_ledger_has_a_limit),
                cmocka_unit_test(test_the_number_of_records_is_limited),
                cmocka_unit_test(test_a_removed_record_leaves_the_others_in_their_order),
                cmocka_unit_test(test_a_record_keeps_all_its_members),
                cmocka_unit_test(test_a_record_that_is_not_as_we_write_it_is_refused),
                cmocka_unit_test(test_hashes_are_the_same_in_each_version),
                cmocka_unit_test(test_a_ledger_survives_the_round_trip),
                cmocka_unit_test(test_foreign_data_survives),
                cmocka_unit_test(test_completed_phases_are_read_from_a_newer_format),
                cmocka_unit_test(test_a_broken_ledger_is_named),
                cmocka_unit_test(test_a_completion_without_a_version_counts),
                cmocka_unit_test(test_a_hash_covers_the_content_only),
                cmocka_unit_test(test_server_side_fields_are_not_content),
                cmocka_unit_test(test_a_replacement_keeps_the_objects_identity),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
