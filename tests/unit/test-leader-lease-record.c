/* SPDX-License-Identifier: Apache-2.0 */
/* The Lease as JSON, and the lock that reads, writes and watches it. */
#undef NDEBUG
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/thread.h"
#include "fake_api_client.h"

#include <holdfast/leader.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "base/utf8.h"
#include "leader/lease_edit.h"
#include "leader/lease_lock.h"
#include "leader/lease_record.h"

static struct hf__record read_text(const char *text) {
        struct hf__json *json = NULL;
        struct hf__record record;
        assert_int_equal(hf__json_parse(text, strlen(text), &json, NULL), 0);
        assert_int_equal(hf__lease_read(json, &record), 0);
        hf__json_free(json);
        return record;
}

static char *write_text(const char *last_text, const struct hf__record *record,
                        const char *const *labels) {
        struct hf__json *last = NULL;
        struct hf__strbuf out = {0};
        if (last_text)
                assert_int_equal(hf__json_parse(last_text, strlen(last_text), &last, NULL), 0);
        hf__lease_write(last, "kube-system", "lead", record, labels, NULL, &out);
        assert_int_equal(out.error, 0);
        hf__json_free(last);
        return out.data;
}

/* Scenarios of docs/parity.md: CG29, CG35. */
static void test_a_record_of_client_go_is_read(void **state) {
        struct hf__record record = read_text(
                "{\"apiVersion\":\"coordination.k8s.io/"
                "v1\",\"kind\":\"Lease\",\"metadata\":{\"name\":\"x\",\"resourceVersion\":\"4711\","
                "\"annotations\":{\"holdfast.dev/"
                "successor\":\"b_2\"}},\"spec\":{\"holderIdentity\":\"host_1\","
                "\"leaseDurationSeconds\":15,"
                "\"acquireTime\":\"2026-11-21T02:36:00.123456Z\",\"renewTime\":\"2026-11-21T02:36:"
                "10.000001Z\",\"leaseTransitions\":3}}");
        assert_true(record.exists);
        assert_string_equal(record.holder, "host_1");
        assert_int_equal(record.duration_s, 15);
        assert_int_equal(record.transitions, 3);
        assert_int_equal(record.acquire_us % 1000000, 123456);
        assert_int_equal(record.renew_us - record.acquire_us, 9876545);
        assert_string_equal(record.successor, "b_2");
        assert_string_equal(record.rv, "4711");
        assert_int_equal(record.rv_number, 4711);
}

/* Scenario of docs/parity.md: CG02. */
static void test_absent_fields_mean_no_holder(void **state) {
        const char *texts[] = {"{}", "{\"spec\":{}}", "{\"spec\":null,\"metadata\":null}",
                               ("{\"spec\":{\"holderIdentity\":null,\"leaseDurationSeconds\":\"x\","
                                "\"acquireTime\":7,\"renewTime\":\"soon\"}}")};
        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
                struct hf__record record = read_text(texts[i]);
                assert_true(record.exists);
                assert_string_equal(record.holder, "");
                assert_int_equal(record.duration_s, 0);
                assert_int_equal(record.acquire_us, 0);
                assert_int_equal(record.renew_us, 0);
                assert_int_equal(record.rv_number, 0);
        }
}

/* Wherever the text is truncated, the rest is valid UTF-8, and cannot be an identity of ours. */
static void test_a_long_holder_is_cut_between_characters(void **state) {
        static const char *const characters[] = {"h", "\xc3\xa9", "\xe2\x82\xac",
                                                 "\xf0\x9f\x98\x80"};
        for (size_t i = 0; i < 4; i++)
                for (size_t n_before = 0; n_before < 5; n_before++) {
                        char holder[1200] = {0}, text[1400];
                        memset(holder, 'x', n_before);
                        for (size_t n = 0; n < 200 + (i == 0 ? 100 : 0); n++)
                                strcat(holder, characters[i]);
                        (void)snprintf(text, sizeof text, "{\"spec\":{\"holderIdentity\":\"%s\"}}",
                                       holder);
                        struct hf__record record = read_text(text);
                        assert_true(hf__utf8_valid(record.holder, strlen(record.holder)));
                        assert_true(strlen(record.holder) > HF_IDENTITY_MAX - 8);
                        assert_string_not_equal(record.holder + strlen(record.holder) -
                                                        strlen(characters[i]),
                                                characters[i]);
                        holder[HF_IDENTITY_MAX] = '\0';
                        assert_string_not_equal(record.holder, holder);
                }
}

static void test_a_foreign_revision_is_kept_as_text(void **state) {
        struct hf__record record = read_text("{\"metadata\":{\"resourceVersion\":\"a-17\"}}");
        assert_string_equal(record.rv, "a-17");
        assert_int_equal(record.rv_number, 0);
        record = read_text("{\"metadata\":{\"resourceVersion\":\"99999999999999999999999\"}}");
        assert_int_equal(record.rv_number, 0);
        errno = ERANGE; /* of an earlier call */
        record = read_text("{\"metadata\":{\"resourceVersion\":\"17\"}}");
        assert_int_equal(record.rv_number, 17);
}

/* Cuts the text, which the test compares. */
static const char *cut(const char *text) {
        static char rest[200];
        size_t n = strlen(text);
        struct hf__lease_cut cut = hf__lease_find_cut(text, n);

        assert_true(cut.from <= cut.to && cut.to <= n && n < sizeof rest);
        memcpy(rest, text, cut.from);
        memcpy(rest + cut.from, text + cut.to, n - cut.to + 1);
        return rest;
}

static void test_managed_fields_are_found(void **state) {
        static const char *const unchanged[] = {
                "",
                "[",
                "{\"metadata\":[]}",
                "{\"metadata\":{\"name\":\"a\"}}",
                "{\"metadata\":{\"name\":\"a\",\"managedFields\":[",
                "{\"metadata\":{\"managedFields\":[],\"name\":\"a\"}}",
                "{\"spec\":{\"a\":1,\"managedFields\":[]}}",
        };

        for (size_t i = 0; i < sizeof unchanged / sizeof *unchanged; i++)
                assert_string_equal(cut(unchanged[i]), unchanged[i]);
        assert_string_equal(cut("{\"metadata\":{\"name\":\"a\" , "
                                "\"managedFields\":[{\"f:a\":\"]\"}] }}"),
                            "{\"metadata\":{\"name\":\"a\" }}");
        assert_string_equal(cut("{\"x\":0,\"metadata\":{\"name\":{\"managedFields\":1},"
                                "\"managedFields\":[],\"u\":1}}"),
                            "{\"x\":0,\"metadata\":{\"name\":{\"managedFields\":1},\"u\":1}}");
}

static void test_a_value_that_is_not_an_object_is_invalid(void **state) {
        struct hf__json *json = hf__json_array();
        struct hf__record record;
        assert_int_equal(hf__lease_read(json, &record), HF_E_INVALID);
        hf__json_free(json);
}

static const struct hf__record sample = {.exists = true,
                                         .holder = "me",
                                         .duration_s = 15,
                                         .acquire_us = 1700000000000000,
                                         .renew_us = 1700000001500000,
                                         .transitions = 2,
                                         .rv = "12",
                                         .rv_number = 12};

/* Scenario of docs/parity.md: CG11. */
static void test_a_record_survives_the_round_trip(void **state) {
        char *text = write_text("{\"metadata\":{\"resourceVersion\":\"12\"}}", &sample, NULL);
        struct hf__record record = read_text(text);
        assert_memory_equal(&record, &sample, sizeof record);
        /* always six digits */
        assert_non_null(strstr(text, "\"renewTime\":\"2023-11-14T22:13:21.500000Z\""));
        free(text);
}

/* Scenario of docs/parity.md: CG35. */
static void test_an_update_keeps_foreign_fields(void **state) {
        const char *labels[] = {"app.kubernetes.io/name=holdfast", "mine=new", NULL};
        char *text = write_text("{\"metadata\":{\"resourceVersion\":\"12\",\"uid\":\"u\","
                                "\"labels\":{\"theirs\":\"1\",\"mine\":\"old\"},"
                                "\"annotations\":{\"a.b/c\":\"d\",\"holdfast.dev/"
                                "successor\":\"x\",\"holdfast.dev/"
                                "hand-over-to\":\"y\"},\"ownerReferences\":[{\"uid\":\"o\"}]},"
                                "\"spec\":{\"strategy\":\"OldestEmulationVersion\","
                                "\"preferredHolder\":\"p\",\"future\":1}}",
                                &sample, labels);
        struct hf__json *json = NULL;
        assert_int_equal(hf__json_parse(text, strlen(text), &json, NULL), 0);
        assert_string_equal(hf__json_string(json, "metadata.labels.theirs"), "1");
        assert_string_equal(hf__json_string(json, "metadata.labels.mine"), "new");
        assert_string_equal(hf__json_text(hf__json_get(hf__json_path(json, "metadata.labels"),
                                                       "app.kubernetes.io/name")),
                            "holdfast");
        assert_string_equal(hf__json_text(hf__json_get(hf__json_path(json, "metadata.annotations"),
                                                       "a.b/c")),
                            "d");
        assert_null(hf__json_get(hf__json_path(json, "metadata.annotations"),
                                 "holdfast.dev/successor"));
        assert_null(hf__json_get(hf__json_path(json, "metadata.annotations"),
                                 "holdfast.dev/hand-over-to"));
        assert_int_equal(hf__json_count(hf__json_path(json, "metadata.ownerReferences")), 1);
        assert_string_equal(hf__json_string(json, "metadata.uid"), "u");
        assert_string_equal(hf__json_string(json, "spec.strategy"), "OldestEmulationVersion");
        assert_string_equal(hf__json_string(json, "spec.preferredHolder"), "p");
        assert_string_equal(hf__json_string(json, "metadata.name"), "lead");
        hf__json_free(json);
        free(text);
}

static void test_a_release_clears_and_may_name_a_successor(void **state) {
        struct hf__record record = {.exists = true,
                                    .rv = "12",
                                    .rv_number = 12,
                                    .transitions = 2,
                                    .successor = "b_2"};
        char *text = write_text("{\"spec\":{\"holderIdentity\":\"me\",\"leaseDurationSeconds\":15,"
                                "\"acquireTime\":\"x\"}}",
                                &record, NULL);
        assert_non_null(strstr(text, "\"holderIdentity\":\"\""));
        assert_non_null(strstr(text, "\"holdfast.dev/successor\":\"b_2\""));
        assert_null(strstr(text, "leaseDurationSeconds")); /* 0 is not a valid duration */
        assert_null(strstr(text, "acquireTime"));
        free(text);
}

/* A Lease as a server returns it; %s: further members of the annotations and of the spec. */
static const char whole[] =
        "{\"kind\":\"Lease\",\"apiVersion\":\"coordination.k8s.io/v1\",\"metadata\":{\"name\":"
        "\"lead\",\"namespace\":\"kube-system\",\"uid\":\"u\",\"resourceVersion\":\"11\","
        "\"labels\":"
        "{\"a\":\"b\"},\"annotations\":{\"holdfast.dev/history\":\"[{\\\"at\\\":1}]\"%s}},\"spec\":"
        "{\"holderIdentity\":\"me\",\"leaseDurationSeconds\":15,\"acquireTime\":"
        "\"2026-01-01T00:00:00.000000Z\", \"renewTime\": "
        "null,\"leaseTransitions\":3,\"x\":[{}]%s}}";

static const char *with(const char *annotation, const char *member) {
        static char text[1024];

        assert_true(snprintf(text, sizeof text, whole, annotation, member) < (int)sizeof text);
        return text;
}

/* Edits the text. NULL: the edit was given up. */
static char *edit_text(const char *last, const struct hf__record *record) {
        const struct hf__lease_edit edit = {"kube-system", "lead", record};
        struct hf__strbuf out = {0};
        bool is_done = hf__lease_edit(&edit, last, strlen(last), &out);

        assert_int_equal(out.error, 0);
        assert_true(is_done || out.n == 0);
        if (is_done)
                return out.data;
        hf__strbuf_done(&out);
        return NULL;
}

/* The same as by the tree: both are printed from a tree, without spaces. */
static void assert_edited_like_written(const char *last, const struct hf__record *record) {
        char *edited = edit_text(last, record), *written = write_text(last, record, NULL);
        struct hf__json *json = NULL;
        struct hf__strbuf again = {0};

        assert_non_null(edited);
        assert_int_equal(hf__json_parse(edited, strlen(edited), &json, NULL), 0);
        hf__json_print(json, &again);
        assert_string_equal(again.data, written);
        hf__json_free(json);
        hf__strbuf_done(&again);
        free(edited);
        free(written);
}

static const struct hf__record renewal = {.exists = true,
                                          .holder = "me",
                                          .duration_s = 15,
                                          .acquire_us = 1767225600000001,
                                          .renew_us = 1767225600000002,
                                          .transitions = 4,
                                          .rv = "12"};

static void test_a_renewal_and_a_release_edit_the_text(void **state) {
        struct hf__record release = renewal;

        assert_edited_like_written(with("", ""), &renewal);
        assert_edited_like_written(with(",\"holdfast.dev/holder-process\":\"1 me p\"", ""),
                                   &renewal);
        assert_edited_like_written(with("", ",\"strategy\":\"OldestEmulationVersion\""), &renewal);
        release.holder[0] = '\0';
        release.duration_s = 1;
        assert_edited_like_written(with("", ""), &release);
}

/* The whole Lease without one part. */
static const char *without(const char *part) {
        static char text[1024];
        char *at;

        strcpy(text, with("", ""));
        at = strstr(text, part);
        assert_non_null(at);
        memmove(at, at + strlen(part), strlen(at + strlen(part)) + 1);
        return text;
}

/* All that a renewal writes must be there to be edited. Only the annotations may be missing. */
static void test_a_lease_that_lacks_a_member_is_not_edited(void **state) {
        static const char *const parts[] = {"\"kind\":\"Lease\",",
                                            "\"apiVersion\":\"coordination.k8s.io/v1\",",
                                            "\"name\":\"lead\",",
                                            "\"namespace\":\"kube-system\",",
                                            "\"resourceVersion\":\"11\",",
                                            "\"holderIdentity\":\"me\",",
                                            "\"leaseDurationSeconds\":15,",
                                            "\"acquireTime\":\"2026-01-01T00:00:00.000000Z\", ",
                                            "\"renewTime\": null,",
                                            "\"leaseTransitions\":3,"};

        for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
                assert_null(edit_text(without(parts[i]), &renewal));
        assert_edited_like_written(without(",\"annotations\":{\"holdfast.dev/"
                                           "history\":\"[{\\\"at\\\":1}]\"}"),
                                   &renewal);
}

static void test_what_is_no_plain_renewal_is_not_edited(void **state) {
        static const char *const parts[][2] = {
                {",\"holdfast.dev/successor\":\"x\"", ""},
                {",\"holdfast.dev/hand-over-to\":\"x\"", ""},
                {",\"holdfast.dev\\/successor\":\"x\"", ""},
                {"", ",\"renewTime\":null"},
                {"", ",\"renew\\u0054ime\":null"},
        };
        static const char *const others[] = {
                "",
                "[]",
                "{}",
                "{\"kind\":\"Lease\",\"apiVersion\":\"coordination.k8s.io/v1\"}",
                "{\"metadata\":{\"resourceVersion\":\"1\"},\"spec\":{\"holderIdentity\":\"me\"}}",
        };
        struct hf__record record = renewal;

        for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
                assert_null(edit_text(with(parts[i][0], parts[i][1]), &renewal));
        for (size_t i = 0; i < sizeof others / sizeof *others; i++)
                assert_null(edit_text(others[i], &renewal));
        record.holder[0] = '\0'; /* a release removes the description of the process */
        assert_null(edit_text(with(",\"holdfast.dev/holder-process\":\"1 me p\"", ""), &record));
        record = renewal;
        record.cause = HF__CAUSE_EXPIRED;
        assert_null(edit_text(with("", ""), &record));
        record = renewal;
        strcpy(record.successor, "b");
        assert_null(edit_text(with("", ""), &record));
        record = renewal;
        strcpy(record.holder, "a\"b");
        assert_null(edit_text(with("", ""), &record));
        record = renewal;
        strcpy(record.rv, "1\n2"); /* of a strange server, as the next one */
        assert_null(edit_text(with("", ""), &record));
        strcpy(record.rv, "1\x1f");
        assert_null(edit_text(with("", ""), &record));
        record = renewal;
        record.duration_s = 0;
        assert_null(edit_text(with("", ""), &record));
        record = renewal;
        record.exists = false;
        assert_null(edit_text(with("", ""), &record));
}

static void test_a_creation_has_no_revision(void **state) {
        struct hf__record record = sample;
        record.exists = false;
        char *text = write_text("{\"metadata\":{\"uid\":\"of a deleted one\"}}", &record, NULL);
        assert_null(strstr(text, "resourceVersion"));
        assert_null(strstr(text, "deleted"));
        assert_non_null(strstr(text, "\"namespace\":\"kube-system\""));
        free(text);
}

/* ---- the lock, over the fake API server ---- */

struct recorded {
        pthread_mutex_t mu;
        pthread_cond_t changed;
        struct hf__lock_reply reply;
        uint32_t op_id;
        size_t n_replies, n_records, n_ends;
        struct hf__record record;
};

static void on_done(void *ctx, uint32_t op_id, const struct hf__lock_reply *reply) {
        struct recorded *recorded = ctx;
        pthread_mutex_lock(&recorded->mu);
        recorded->reply = *reply;
        recorded->op_id = op_id;
        recorded->n_replies++;
        pthread_cond_broadcast(&recorded->changed);
        pthread_mutex_unlock(&recorded->mu);
}

static void on_record(void *ctx, const struct hf__record *record) {
        struct recorded *recorded = ctx;
        pthread_mutex_lock(&recorded->mu);
        if (record)
                recorded->record = *record;
        *(record ? &recorded->n_records : &recorded->n_ends) += 1;
        pthread_cond_broadcast(&recorded->changed);
        pthread_mutex_unlock(&recorded->mu);
}

static void await(struct recorded *recorded, const size_t *count, size_t n) {
        const struct hf_clock *clock = hf_clock_system();
        hf_nsec until = hf_now(clock) + 10 * HF_NSEC_PER_SEC;
        pthread_mutex_lock(&recorded->mu);
        while (*count < n && hf_now(clock) < until)
                (void)clock->wait(clock->ctx, &recorded->changed, &recorded->mu, until);
        size_t got = *count;
        pthread_mutex_unlock(&recorded->mu);
        assert_true(got >= n);
}

struct fixture {
        struct fake_api *api;
        struct fake_api_client *client;
        struct hf__lock *lock;
        struct recorded recorded;
        uint32_t op_id;
};

static struct fixture *fixture_new(void) {
        static const char *const labels[] = {"team=a", NULL};
        struct fixture *f = calloc(1, sizeof *f);
        f->api = fake_api_new();
        f->client = fake_api_client_new(f->api);
        struct hf_elector_config config = {.ns = "kube-system",
                                           .name = "lead",
                                           .client = &f->client->base,
                                           .labels = labels,
                                           .n_labels = 1};
        assert_int_equal(hf__lease_lock_new(&f->api->host, &config, NULL, NULL, &f->lock), 0);
        assert_int_equal(hf__mutex_cond_init(&f->recorded.mu, &f->recorded.changed), 0);
        f->lock->on_reply = on_done;
        f->lock->on_record = on_record;
        f->lock->ctx = &f->recorded;
        return f;
}

static void fixture_free(struct fixture *f) {
        if (f->lock)
                f->lock->ops->free(f->lock);
        hf_client_free(&f->client->base);
        fake_api_free(f->api);
        pthread_cond_destroy(&f->recorded.changed);
        pthread_mutex_destroy(&f->recorded.mu);
        free(f);
}

static hf_nsec soon(void) { return hf_now(hf_clock_system()) + 5 * HF_NSEC_PER_SEC; }

static struct hf__lock_reply read_lease(struct fixture *f) {
        f->lock->ops->read(f->lock, ++f->op_id, soon());
        await(&f->recorded, &f->recorded.n_replies, f->op_id);
        assert_int_equal(f->recorded.op_id, f->op_id);
        return f->recorded.reply;
}

static struct hf__lock_reply write_record(struct fixture *f, const struct hf__record *record) {
        f->lock->ops->write(f->lock, ++f->op_id, record, soon());
        await(&f->recorded, &f->recorded.n_replies, f->op_id);
        return f->recorded.reply;
}

#define KEY "leases/kube-system/lead"

/* Scenarios of docs/parity.md: CG28, CG32, ET11. */
static void test_the_lock_creates_reads_and_updates(void **state) {
        struct fixture *f = fixture_new();
        assert_int_equal(read_lease(f).result, HF_E_NOT_FOUND);
        struct hf__record record = sample;
        record.exists = false;
        struct hf__lock_reply reply = write_record(f, &record);
        assert_int_equal(reply.result, 0);
        assert_string_equal(reply.record.holder, "me");
        assert_int_equal(write_record(f, &record).result, HF_E_EXISTS);
        record = reply.record;
        record.transitions = 9;
        reply = write_record(f, &record);
        assert_int_equal(reply.result, 0);
        assert_int_equal(reply.record.transitions, 9);
        assert_true(reply.record.rv_number > record.rv_number);
        assert_int_equal(write_record(f, &record).result, HF_E_CONFLICT); /* the old revision */
        assert_int_equal(read_lease(f).record.rv_number, reply.record.rv_number);
        fixture_free(f);
}

/* Scenarios of docs/parity.md: CG33, CG34. */
static void test_an_update_of_a_lease_never_read_is_refused(void **state) {
        struct fixture *f = fixture_new();
        fake_api_put(f->api, KEY,
                     "{\"metadata\":{\"name\":\"lead\"},\"spec\":{\"holderIdentity\":\"other\"}}");
        size_t n_calls = f->api->n_requests;
        struct hf__lock_reply reply = write_record(f, &sample);
        assert_int_equal(reply.result, HF_E_CONFLICT);
        /* the lock says which Lease it is */
        assert_non_null(strstr(reply.status.message, "lease kube-system/lead:"));
        /* no request was made */
        assert_int_equal(f->api->n_requests, n_calls);
        fixture_free(f);
}

/*
 * docs/parity.md, CG36, CG37: The Lease has no labels, or null in their place, or none are
 * configured: each is accepted.
 */
static void test_labels_may_be_absent_on_either_side(void **state) {
        const char *labels[] = {"mine=1", NULL};
        const char *leases[] = {"{\"metadata\":{}}", "{\"metadata\":{\"labels\":null}}", "{}"};
        for (size_t i = 0; i < sizeof leases / sizeof *leases; i++) {
                char *text = write_text(leases[i], &sample, labels);
                assert_non_null(strstr(text, "\"labels\":{\"mine\":\"1\"}"));
                free(text);
        }
        char *text = write_text("{\"metadata\":{\"labels\":{\"theirs\":\"2\"}}}", &sample, NULL);
        assert_non_null(strstr(text, "\"labels\":{\"theirs\":\"2\"}"));
        free(text);
        text = write_text("{}", &sample, NULL);
        assert_null(strstr(text, "labels"));
        free(text);
}

/* Scenario of docs/parity.md: CG38. */
static void test_the_lock_keeps_foreign_labels_and_reasserts_its_own(void **state) {
        struct fixture *f = fixture_new();
        fake_api_put(f->api, KEY,
                     "{\"metadata\":{\"name\":\"lead\",\"labels\":{\"x.y/"
                     "z\":\"1\",\"team\":\"b\"}},\"spec\":{}}");
        struct hf__record record = read_lease(f).record;
        strcpy(record.holder, "me");
        assert_int_equal(write_record(f, &record).result, 0);
        char *text = fake_api_get(f->api, KEY);
        assert_non_null(strstr(text, "\"x.y/z\":\"1\""));
        assert_non_null(strstr(text, "\"team\":\"a\""));
        free(text);
        fixture_free(f);
}

static void test_the_watch_reports_changes_and_deletions(void **state) {
        struct fixture *f = fixture_new();
        f->lock->ops->watch(f->lock);
        fake_api_put(f->api, KEY,
                     "{\"metadata\":{\"name\":\"lead\"},\"spec\":{\"holderIdentity\":\"other\"}}");
        await(&f->recorded, &f->recorded.n_records, 1);
        assert_string_equal(f->recorded.record.holder, "other");
        fake_api_delete(f->api, KEY);
        await(&f->recorded, &f->recorded.n_records, 2);
        assert_false(f->recorded.record.exists);
        assert_true(f->recorded.record.rv_number > 0);
        f->lock->ops->watch(
                f->lock); /* a new watch: the previous one sends nothing more, not even its end */
        fake_api_put(f->api, KEY, "{\"metadata\":{\"name\":\"lead\"}}");
        await(&f->recorded, &f->recorded.n_records, 3);
        assert_int_equal(f->recorded.n_ends, 0);
        fixture_free(f);
}

/* The content of the event is lost, so a caller that waits for events must read. */
static void test_an_unreadable_event_ends_the_watch(void **state) {
        struct fixture *f = fixture_new();
        f->lock->ops->watch(f->lock);
        fake_api_put(f->api, KEY, "{\"metadata\":{\"name\":\"lead\"}}");
        await(&f->recorded, &f->recorded.n_records, 1);
        fake_api_send_event(f->api, HF_EVENT_MODIFIED, "7");
        await(&f->recorded, &f->recorded.n_ends, 1);
        assert_int_equal(f->recorded.n_records, 1);
        f->lock->ops->watch(f->lock);
        await(&f->recorded, &f->recorded.n_records, 2);
        fixture_free(f);
}

/* How often "cause" is in the Lease's history, which is JSON inside JSON. */
static int n_in_history(struct fixture *f) {
        char *text = fake_api_get(f->api, KEY);
        int n = 0;
        for (const char *at = text; at && (at = strstr(at, "\\\"cause\\\"")); at++)
                n++;
        free(text);
        return n;
}

static void test_a_history_is_remembered_past_a_deletion(void **state) {
        struct fixture *f = fixture_new();
        struct hf__record record = sample;
        record.exists = false;
        record.cause = HF__CAUSE_CREATED;
        assert_int_equal(write_record(f, &record).result, 0);
        assert_int_equal(n_in_history(f), 1);
        fake_api_delete(f->api, KEY);
        assert_int_equal(read_lease(f).result, HF_E_NOT_FOUND);
        struct hf__record update = sample;
        update.exists = true;
        /* a deleted Lease is not updated */
        assert_int_equal(write_record(f, &update).result, HF_E_CONFLICT);
        record.cause = HF__CAUSE_DELETED;
        assert_int_equal(write_record(f, &record).result, 0);
        assert_int_equal(n_in_history(f), 2);
        f->lock->ops->watch(f->lock); /* reported by the watch this time */
        await(&f->recorded, &f->recorded.n_records, 1);
        fake_api_delete(f->api, KEY);
        await(&f->recorded, &f->recorded.n_records, 2);
        assert_int_equal(write_record(f, &record).result, 0);
        assert_int_equal(n_in_history(f), 3);
        fixture_free(f);
}

static void test_an_unknown_outcome_of_a_write_is_a_timeout(void **state) {
        struct fixture *f = fixture_new();
        struct hf__record record = sample;
        record.exists = false;
        fake_api_client_refuse_writes(f->client, HF_E_CANCELED, 1);
        assert_int_equal(write_record(f, &record).result, HF_E_TIMEOUT);
        fake_api_client_refuse_writes(f->client, HF_E_FORBIDDEN, 1);
        assert_int_equal(write_record(f, &record).result, HF_E_FORBIDDEN);
        fixture_free(f);
}

static void test_freeing_with_requests_under_way_calls_nothing_back(void **state) {
        struct fixture *f = fixture_new();
        fake_api_client_set_mode(f->client, FAKE_API_HANGS);
        f->lock->ops->watch(f->lock);
        f->lock->ops->read(f->lock, 1, soon());
        f->lock->ops->free(f->lock);
        f->lock = NULL;
        hf_client_free(&f->client->base); /* the late replies have arrived by now */
        assert_int_equal(f->recorded.n_replies + f->recorded.n_records + f->recorded.n_ends, 0);
        f->client = fake_api_client_new(f->api);
        fixture_free(f);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_record_of_client_go_is_read),
                cmocka_unit_test(test_absent_fields_mean_no_holder),
                cmocka_unit_test(test_a_long_holder_is_cut_between_characters),
                cmocka_unit_test(test_a_foreign_revision_is_kept_as_text),
                cmocka_unit_test(test_managed_fields_are_found),
                cmocka_unit_test(test_a_value_that_is_not_an_object_is_invalid),
                cmocka_unit_test(test_a_record_survives_the_round_trip),
                cmocka_unit_test(test_an_update_keeps_foreign_fields),
                cmocka_unit_test(test_a_release_clears_and_may_name_a_successor),
                cmocka_unit_test(test_a_renewal_and_a_release_edit_the_text),
                cmocka_unit_test(test_a_lease_that_lacks_a_member_is_not_edited),
                cmocka_unit_test(test_what_is_no_plain_renewal_is_not_edited),
                cmocka_unit_test(test_a_creation_has_no_revision),
                cmocka_unit_test(test_the_lock_creates_reads_and_updates),
                cmocka_unit_test(test_an_update_of_a_lease_never_read_is_refused),
                cmocka_unit_test(test_labels_may_be_absent_on_either_side),
                cmocka_unit_test(test_the_lock_keeps_foreign_labels_and_reasserts_its_own),
                cmocka_unit_test(test_the_watch_reports_changes_and_deletions),
                cmocka_unit_test(test_an_unreadable_event_ends_the_watch),
                cmocka_unit_test(test_a_history_is_remembered_past_a_deletion),
                cmocka_unit_test(test_an_unknown_outcome_of_a_write_is_a_timeout),
                cmocka_unit_test(test_freeing_with_requests_under_way_calls_nothing_back),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
