/* SPDX-License-Identifier: Apache-2.0 */
/* See scripted_watch.h. Events arrive on threads of the cacher, so mu guards the text. */
#include "scripted_watch.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/thread.h"
#include "patience.h"
#include "scripted_cacher.h"
#include "server/resources/rows/resource_table.h"

static void add_text(struct scripted_watch *watch, const char *format, ...) HF_PRINTF(2, 3);
static void add_text(struct scripted_watch *watch, const char *format, ...) {
        va_list args;

        va_start(args, format);
        int n = vsnprintf(watch->text + watch->n, sizeof watch->text - watch->n, format, args);
        va_end(args);
        assert_true(n >= 0 && (size_t)n < sizeof watch->text - watch->n);
        watch->n += (size_t)n;
}

static bool on_events(void *ctx, struct hfd_watch_item *items, size_t n) {
        struct scripted_watch *watch = ctx;

        pthread_mutex_lock(&watch->mu);
        if (watch->keeps_frame) {
                hf__buf_unref(watch->frame);
                watch->frame = hfd_object_frame(items[n - 1].object, items[n - 1].type);
        }
        for (size_t i = 0; i < n; i++)
                add_text(watch, "%c%s@%" PRIu64 " ", "+~-b"[items[i].type],
                         items[i].object ? hfd_object_name(items[i].object) : "",
                         items[i].revision);
        pthread_mutex_unlock(&watch->mu);
        return true;
}

static void on_end(void *ctx, int error, const struct hfd_response *response) {
        struct scripted_watch *watch = ctx;

        pthread_mutex_lock(&watch->mu);
        if (error == HF_E_CANCELED)
                add_text(watch, "END:canceled ");
        else
                add_text(watch, "END:%d ", response->code);
        pthread_mutex_unlock(&watch->mu);
}

static bool begin(struct scripted_watch *watch, struct scripted_watch_spec spec,
                  struct hfd_response *response) {
        static const struct hfd_watch_sink sink = {.events = on_events, .end = on_end};
        const char *plural = spec.plural ? spec.plural : "configmaps";
        struct hfd_selector labels = {0}, fields = {0};
        struct hfd_watcher_spec inner = {.resource = hfd_resource_find("", "v1", plural),
                                         .ns = spec.ns ? spec.ns : "",
                                         .name = spec.name ? spec.name : "",
                                         .labels = &labels,
                                         .fields = &fields,
                                         .revision = spec.revision,
                                         .from_now = spec.from_now,
                                         .timeout_s = spec.timeout_s,
                                         .bookmarks = spec.bookmarks,
                                         .in_process = spec.in_process};
        char reason[320];

        assert_non_null(inner.resource);
        if (spec.labels)
                assert_int_equal(hfd_selector_parse(spec.labels, false, inner.resource, &labels,
                                                    reason, sizeof reason),
                                 0);
        if (spec.fields)
                assert_int_equal(hfd_selector_parse(spec.fields, true, inner.resource, &fields,
                                                    reason, sizeof reason),
                                 0);
        memset(watch, 0, sizeof *watch);
        watch->keeps_frame = spec.keeps_frame;
        assert_int_equal(hf__mutex_init(&watch->mu), 0);
        return hfd_watcher_new(scripted.cacher, &inner, &sink, watch, response, &watch->watcher);
}

void scripted_watch_begin(struct scripted_watch *watch, struct scripted_watch_spec spec) {
        struct hfd_response response = {0};

        assert_true(begin(watch, spec, &response));
        hfd_watcher_start(watch->watcher);
}

void scripted_watch_expect_refused(struct scripted_watch_spec spec, int code, const char *message) {
        struct hfd_response response = {0};
        struct scripted_watch watch;

        assert_false(begin(&watch, spec, &response));
        assert_int_equal(response.code, code);
        assert_string_equal(response.status.message, message);
        assert_int_equal(watch.n, 0);
        hfd_response_done(&response);
        pthread_mutex_destroy(&watch.mu);
}

void scripted_watch_expect(struct scripted_watch *watch, const char *text) {
        pthread_mutex_lock(&watch->mu);
        assert_string_equal(watch->text, text);
        watch->text[0] = '\0';
        watch->n = 0;
        pthread_mutex_unlock(&watch->mu);
}

static bool is_silent(struct scripted_watch *watch) {
        pthread_mutex_lock(&watch->mu);
        bool is = watch->n == 0;
        pthread_mutex_unlock(&watch->mu);
        return is;
}

void scripted_watch_await(struct scripted_watch *watch) { PATIENCE_AWAIT(!is_silent(watch)); }

/* The mutex stays: a test may still look at what came until the end. */
void scripted_watch_done(struct scripted_watch *watch) {
        hfd_watcher_cancel(watch->watcher);
        assert_null(hfd_watcher_unref(watch->watcher));
        hf__buf_unref(watch->frame);
}
