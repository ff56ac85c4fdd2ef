/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See scripted_cacher.h. The cacher logs and calls its callbacks on threads of its own, so log_mu
 * guards the log, and the counts are atomic.
 */
#include "scripted_cacher.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <holdfast/metrics.h>

#include "base/strbuf.h"
#include "failing_memory.h"
#include "patience.h"
#include "server/cacher/state/cacher_state.h"
#include "server/cacher/sync/reflector.h"
#include "server/resources/rows/resource_table.h"

#define LINES_MAX 64

struct scripted_cacher scripted;
static pthread_mutex_t log_mu = PTHREAD_MUTEX_INITIALIZER;
static char lines[LINES_MAX][512]; /* guarded by log_mu */
static size_t n_lines;             /* the same */
static size_t n_live;              /* allocations at the beginning of the test */

/* ---- callbacks ---- */

static void keep_line(void *ctx, enum hf_log_level level, const char *component,
                      const char *message) {
        pthread_mutex_lock(&log_mu);
        if (n_lines < LINES_MAX)
                (void)snprintf(lines[n_lines++], sizeof lines[0], "%d %s: %s", (int)level,
                               component, message);
        pthread_mutex_unlock(&log_mu);
}

static void on_replaced(void *ctx) {
        struct scripted_cacher *self = ctx;

        atomic_store(&self->replaced_before_stop, scripted_store_is_watched(&self->store));
        atomic_fetch_add(&self->n_replaced, 1);
        if (self->when_replaced)
                self->when_replaced();
}

static void on_copy_begun(void *ctx) {
        struct scripted_cacher *self = ctx;

        atomic_fetch_add(&self->n_copies, 1);
}

static void on_observed(void *ctx, unsigned observers) {
        struct scripted_cacher *self = ctx;

        atomic_store(&self->observed, observers);
        atomic_fetch_add(&self->n_observed, 1);
}

static unsigned char observers_of(const struct hfd_resource *resource) {
        if (strcmp(resource->plural, "configmaps") == 0)
                return SCRIPTED_CONFIGMAPS;
        return strcmp(resource->plural, "secrets") == 0 ? SCRIPTED_SECRETS : 0;
}

/* ---- set-up and tear-down ---- */

int scripted_cacher_set_up(void **state) {
        n_live = failing_memory_n_live();
        memset(&scripted, 0, sizeof scripted);
        n_lines = 0;
        hand_clock_reset();
        scripted.host = (struct hf_host){.size = sizeof scripted.host,
                                         .clock = &hand_clock,
                                         .log = {.write = keep_line, .max_level = HF_LOG_DEBUG}};
        assert_int_equal(hf_metrics_new(&scripted.host.metrics), 0);
        scripted_store_init(&scripted.store, &scripted.host);
        scripted.table = hfd_custom_table_new();
        assert_non_null(scripted.table);
        const struct hfd_cacher_config config = {.store = &scripted.store.base,
                                                 .prefix = "/registry",
                                                 .table = scripted.table,
                                                 .holder = "holder",
                                                 .on_history_replaced = on_replaced,
                                                 .observers = observers_of,
                                                 .on_observed = on_observed,
                                                 .on_copy_begun = on_copy_begun,
                                                 .ctx = &scripted};
        assert_int_equal(hfd_cacher_new(&scripted.host, &config, &scripted.cacher), 0);
        return 0;
}

int scripted_cacher_tear_down(void **state) {
        for (int kind = 0; kind < SCRIPTED_N_KINDS; kind++)
                scripted_store_refuse(&scripted.store, (enum scripted_kind)kind, HF_E_CLOSED);
        scripted_store_refuse_watch(&scripted.store, HF_E_CLOSED);
        while (scripted_store_n_waiting(&scripted.store) > 0) {
                enum scripted_kind kind = scripted.store.waiting[0].kind;
                struct scripted_request request = scripted_store_next(&scripted.store, kind);
                scripted_reply_error(&request, HF_E_CANCELED);
        }
        hfd_cacher_free(scripted.cacher);
        hfd_custom_table_free(scripted.table);
        scripted_store_deinit(&scripted.store);
        hf_metrics_free(scripted.host.metrics);
        assert_int_equal(failing_memory_n_live(), n_live);
        return 0;
}

/* ---- filling ---- */

void scripted_cacher_reply_epoch(const char *value, uint64_t revision) {
        struct scripted_request request = scripted_store_next(&scripted.store, SCRIPTED_GET);

        assert_string_equal(request.key, "/registry.holdfast/epoch");
        if (value)
                scripted_reply_key(&request, revision, request.key, value, 1);
        else
                scripted_reply_revision(&request, revision);
}

void scripted_cacher_reply_list(uint64_t revision) {
        static const char a[] = SCRIPTED_OBJECT("a"), b[] = SCRIPTED_OBJECT("b");
        struct scripted_request request = scripted_store_next(&scripted.store, SCRIPTED_LIST);
        char keys[2][32] = {"/registry/configmaps/ns/a", "/registry/configmaps/ns/b"};
        const struct hfd_kv kvs[] = {
                {.key = keys[0],
                 .value = hf__buf_copy(a, strlen(a)),
                 .mod_revision = 5,
                 .create_revision = 5},
                {.key = keys[1],
                 .value = hf__buf_copy(b, strlen(b)),
                 .mod_revision = 7,
                 .create_revision = 7},
        };

        assert_string_equal(request.key, "/registry/");
        assert_string_equal(request.start, "");
        assert_false(request.keys_only);
        scripted_reply(&request,
                       &(struct hfd_store_reply){.revision = revision, .kvs = kvs, .n_kvs = 2});
        memset(keys, 'x', sizeof keys); /* the cacher must have copied them */
        hf__buf_unref(kvs[0].value);
        hf__buf_unref(kvs[1].value);
}

static bool follows(unsigned n) {
        pthread_mutex_lock(&scripted.cacher->mu);
        bool is = scripted.cacher->watch.id == n;
        pthread_mutex_unlock(&scripted.cacher->mu);
        return is;
}

void scripted_cacher_await_watch(unsigned n) {
        scripted_store_await_watch(&scripted.store, n);
        PATIENCE_AWAIT(follows(n));
}

static bool is_in_backoff(void) {
        pthread_mutex_lock(&scripted.cacher->mu);
        bool is = hfd_reflector_due_locked(scripted.cacher) != HF_NSEC_NEVER;
        pthread_mutex_unlock(&scripted.cacher->mu);
        return is;
}

void scripted_cacher_await_backoff(void) { PATIENCE_AWAIT(is_in_backoff()); }

void scripted_cacher_fill(void) {
        assert_int_equal(hfd_cacher_start(scripted.cacher), 0);
        scripted_cacher_reply_epoch(NULL, 10);
        scripted_cacher_reply_list(10);
        scripted_cacher_await_watch(1);
}

void scripted_cacher_move(hf_nsec by) {
        hand_clock_move(by);
        hand_clock_await_waiter();
}

/* ---- what can be seen ---- */

const char *scripted_cacher_key(const char *name) {
        static char keys[4][HFD_KEY_MAX];
        static unsigned next;
        char *key = keys[next++ % 4];

        (void)snprintf(key, HFD_KEY_MAX, "/registry/configmaps/ns/%s", name);
        return key;
}

uint64_t scripted_cacher_seen(const char *path) {
        const struct hfd_resource *resource = hfd_resource_find("", "v1", "configmaps");
        struct hfd_object *object = hfd_cacher_get(scripted.cacher, resource, path);
        uint64_t revision = object ? object->revision : 0;

        hfd_object_unref(object);
        return revision;
}

size_t scripted_cacher_n_logged(const char *text) {
        size_t n = 0;

        pthread_mutex_lock(&log_mu);
        for (size_t i = 0; i < n_lines; i++)
                n += strstr(lines[i], text) != NULL;
        pthread_mutex_unlock(&log_mu);
        return n;
}

static void add_text(void *ctx, const char *text, size_t n) { hf__strbuf_add(ctx, text, n); }

double scripted_cacher_metric(const char *name) {
        struct hf__strbuf text = {0};
        char line[256];

        hf_metrics_write(scripted.host.metrics, add_text, &text);
        hf__strbuf_putc(&text, '\0');
        (void)snprintf(line, sizeof line, "\n%s ", name);
        const char *found = strstr(text.data, line);
        assert_non_null(found);
        double value = strtod(found + strlen(line), NULL);
        hf__strbuf_done(&text);
        return value;
}
