/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The status model as JSON. Invariant: every object has all of its members, in a fixed order; a
 * value that is not known is null. So a program need not ask whether a member is there.
 */
#include "server/status/render_json.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/strbuf.h"
#include "base/time_format.h"
#include "server/status/model.h"

/* Begins a member. Each object begins with '{', and its first member gets no comma. */
static void add_name(struct hf__strbuf *out, const char *name) {
        if (out->n > 0 && out->data[out->n - 1] != '{')
                hf__strbuf_putc(out, ',');
        hf__strbuf_printf(out, "\"%s\":", name);
}

/* Adds a text; "" becomes null. */
static void add_text(struct hf__strbuf *out, const char *name, const char *value) {
        add_name(out, name);
        if (value[0])
                hf__strbuf_json(out, value, strlen(value));
        else
                hf__strbuf_puts(out, "null");
}

/* Adds a time; 0 becomes null. */
static void add_time(struct hf__strbuf *out, const char *name, int64_t us) {
        char text[HF__MICROTIME_MAX] = "";

        if (us > 0)
                hf__microtime_format(us, text);
        add_text(out, name, text);
}

static void add_number(struct hf__strbuf *out, const char *name, int64_t value) {
        add_name(out, name);
        hf__strbuf_printf(out, "%" PRId64, value);
}

/* Adds a number; 0 becomes null. */
static void add_known_number(struct hf__strbuf *out, const char *name, int64_t value) {
        if (value != 0)
                add_number(out, name, value);
        else
                add_text(out, name, "");
}

static void add_bool(struct hf__strbuf *out, const char *name, bool value) {
        add_name(out, name);
        hf__strbuf_puts(out, value ? "true" : "false");
}

/* Begins an item of an array. */
static void begin_item(struct hf__strbuf *out, unsigned index) {
        hf__strbuf_puts(out, index > 0 ? ",{" : "{");
}

/* The term 0 means that the instance leads nothing or that its term is not known (model.h), so it
 * becomes null. */
static void add_instance(struct hf__strbuf *out, const struct hfd_status_instance *instance) {
        add_text(out, "identity", instance->identity);
        add_text(out, "instance", instance->name);
        add_text(out, "host", instance->host);
        add_text(out, "endpoint", instance->endpoint);
        add_text(out, "state", instance->state);
        add_time(out, "seen", instance->renew_us);
        add_text(out, "lease", instance->lease);
        add_known_number(out, "term", (int64_t)instance->term);
        hf__strbuf_putc(out, '}');
}

static void add_hand_over(struct hf__strbuf *out, const struct hf__lease_history_entry *entry) {
        add_time(out, "at", entry->at_us);
        add_text(out, "from", entry->previous);
        add_text(out, "to", entry->holder);
        add_text(out, "cause", entry->cause);
        /* A new Lease had no previous holder, so there is no gap. */
        if (strcmp(entry->cause, "created") == 0)
                add_text(out, "gapMilliseconds", "");
        else
                add_number(out, "gapMilliseconds", entry->gap_ms);
        hf__strbuf_putc(out, '}');
}

static void add_lease(struct hf__strbuf *out, const struct hfd_status_model *model,
                      const struct hfd_status_lease *lease, int64_t now_us) {
        add_text(out, "lease", lease->label);
        add_text(out, "holder", lease->holder);
        add_bool(out, "silent", hfd_status_model_is_silent(lease, now_us));
        add_time(out, "acquired", lease->acquire_us);
        add_time(out, "renewed", lease->renew_us);
        add_known_number(out, "durationSeconds", lease->duration_s);
        add_known_number(out, "term", (int64_t)hfd_status_model_term(model, lease));
        add_number(out, "transitions", lease->n_transitions);
        add_name(out, "handOvers");
        hf__strbuf_putc(out, '[');
        for (unsigned i = 0; i < lease->n_history; i++) { /* the newest first */
                begin_item(out, i);
                add_hand_over(out, &lease->history[lease->n_history - 1 - i]);
        }
        hf__strbuf_puts(out, "]}");
}

void hfd_status_render_json(const struct hfd_status_model *model, int64_t now_us,
                            struct hf__strbuf *out) {
        assert(model->n_instances <= HFD_STATUS_MAX_INSTANCES);
        hf__strbuf_putc(out, '{');
        add_text(out, "server", model->server);
        add_time(out, "time", now_us);
        add_text(out, "readError", model->read_error);
        add_name(out, "instances");
        hf__strbuf_putc(out, '[');
        for (unsigned i = 0; i < model->n_instances; i++) {
                begin_item(out, i);
                add_instance(out, &model->instances[i]);
        }
        hf__strbuf_putc(out, ']');
        add_number(out, "omittedInstances", model->n_omitted_instances);
        add_name(out, "leases");
        hf__strbuf_putc(out, '[');
        for (unsigned i = 0; i < model->n_leases; i++) {
                begin_item(out, i);
                add_lease(out, model, &model->leases[i], now_us);
        }
        hf__strbuf_putc(out, ']');
        add_number(out, "omittedLeases", model->n_omitted_leases);
        hf__strbuf_puts(out, "}\n");
}
