/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cells of Events, as kube-apiserver shows them. Older and newer Events keep the same facts in
 * different members: firstTimestamp, lastTimestamp, count and source, or eventTime, series and
 * reportingComponent.
 *
 * Invariant: each call writes exactly one JSON value, also for an Event that has neither form,
 * because a row has one value for each column.
 */
#include "server/registry/list/cells/event_cells.h"

#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "base/time_format.h"

static void put_text(struct hf__strbuf *s, const char *text, size_t n) {
        hf__strbuf_json(s, text, n);
}

/* Returns a, or b if a is empty. */
static const char *first_of(const char *a, const char *b) { return *a ? a : b; }

static void put_since(struct hf__strbuf *s, const char *time, int64_t now_s) {
        char age[HF__AGE_MAX] = "<unknown>";
        int64_t then;

        if (hf__time_parse(time, &then) == 0)
                hf__age_format(now_s - then, age);
        put_text(s, age, strlen(age));
}

static const char *first_seen(const struct hf__json *event) {
        return first_of(hf__json_string_or_empty(event, "firstTimestamp"),
                        hf__json_string_or_empty(event, "eventTime"));
}

static const char *last_seen(const struct hf__json *event) {
        if (hf__json_get(event, "series"))
                return hf__json_string_or_empty(event, "series.lastObservedTime");
        return first_of(hf__json_string_or_empty(event, "lastTimestamp"), first_seen(event));
}

static int64_t count_of(const struct hf__json *event) {
        int64_t count = 0;

        if (hf__json_get(event, "series")) {
                (void)hf__json_i64(event, "series.count", &count);
                return count;
        }
        (void)hf__json_i64(event, "count", &count);
        return count == 0 ? 1 : count;
}

/* "kind/name", the kind in lower case. Here and in put_source, a text that does not fit into the
 * array is cut. */
static void put_object(struct hf__strbuf *s, const struct hf__json *event) {
        const char *kind = hf__json_string_or_empty(event, "involvedObject.kind"),
                   *name = hf__json_string_or_empty(event, "involvedObject.name");
        char text[600];

        (void)snprintf(text, sizeof text, "%s%s%s", kind, *name ? "/" : "", name);
        for (char *c = text; *c && *c != '/'; c++)
                *c = (char)tolower((unsigned char)*c);
        put_text(s, text, strlen(text));
}

static void put_source(struct hf__strbuf *s, const struct hf__json *event) {
        const char *component = first_of(hf__json_string_or_empty(event, "source.component"),
                                         hf__json_string_or_empty(event, "reportingComponent")),
                   *host = first_of(hf__json_string_or_empty(event, "source.host"),
                                    hf__json_string_or_empty(event, "reportingInstance"));
        char text[600];

        (void)snprintf(text, sizeof text, "%s%s%s", component, *host ? ", " : "", host);
        put_text(s, text, strlen(text));
}

/* Appends the message without the white space around it. */
static void put_message(struct hf__strbuf *s, const struct hf__json *event) {
        const char *text = hf__json_string_or_empty(event, "message");
        size_t n;

        while (isspace((unsigned char)*text))
                text++;
        n = strlen(text);
        while (n > 0 && isspace((unsigned char)text[n - 1]))
                n--;
        put_text(s, text, n);
}

void hfd_event_put_cell(struct hf__strbuf *s, const struct hf__json *event, const char *what,
                        int64_t now_s) {
        if (strcmp(what, "last") == 0) {
                put_since(s, last_seen(event), now_s);
        } else if (strcmp(what, "first") == 0) {
                put_since(s, first_seen(event), now_s);
        } else if (strcmp(what, "count") == 0) {
                hf__strbuf_printf(s, "%" PRId64, count_of(event));
        } else if (strcmp(what, "object") == 0) {
                put_object(s, event);
        } else if (strcmp(what, "source") == 0) {
                put_source(s, event);
        } else {
                assert(strcmp(what, "message") == 0);
                put_message(s, event);
        }
}
