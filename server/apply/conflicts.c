/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conflicts of an apply, and their message.
 *
 * Invariant: the response has a limit. Paths share their beginnings, each cause names its manager,
 * and clients choose these texts. Without a limit all paths and names together could be much longer
 * than the request's body.
 */
#include "server/apply/conflicts.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/utf8.h"

/* The first byte of a character in a string that Go has encoded as JSON. A NUL is the end, where
 * JSON has the closing quote. Go also escapes the three characters that have a meaning in HTML. (It
 * escapes U+2028 and U+2029 as well, which count as not escaped here.) */
static int byte_in_json(char c) {
        if (c == 0)
                return '"';
        return (unsigned char)c < ' ' || strchr("\"\\<>&", c) ? '\\' : (unsigned char)c;
}

/* The byte behind the backslash. A `u` is followed by the number of the character. */
static int escape_of(char c) {
        static const char plain[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
        const char *found = strchr(plain, c);

        return found ? letters[found - plain] : 'u';
}

/* The order of two texts as JSON. */
static int order_in_json(const char *x, const char *y) {
        while (*x && *x == *y) {
                x++;
                y++;
        }
        int order = byte_in_json(*x) - byte_in_json(*y);
        if (order != 0 || *x == *y)
                return order;
        /* Both have a backslash here. */
        order = escape_of(*x) - escape_of(*y);
        return order != 0 ? order : (unsigned char)*x - (unsigned char)*y;
}

/* Kubernetes sorts managers by the JSON texts of their entries, without times and fields, and for
 * managers that apply, without apiVersion. Where one text has a further member and the other ends,
 * the comma of the first sorts before the brace of the second. An entry with an empty name has no
 * member `manager`: its text begins with `operation`, so it comes last. */
static int order_of_names(const void *a, const void *b) {
        const struct hfd_manager *x = a, *y = b;
        int order = !*x->name - !*y->name;

        if (order == 0)
                order = order_in_json(x->name, y->name);
        if (order == 0)
                order = y->applies - x->applies;
        if (order == 0 && !x->applies)
                order = order_in_json(x->api_version, y->api_version);
        if (order == 0) /* an entry with a subresource has one more member */
                order = !*x->subresource - !*y->subresource;
        return order == 0 ? order_in_json(x->subresource, y->subresource) : order;
}

static void add_conflict(struct hfd_conflicts *conflicts, const struct hfd_manager *manager,
                         const struct hfd_fields *fields) {
        if (!fields)
                return;
        assert(conflicts->at && manager->name);
        conflicts->at[conflicts->n] = *manager;
        conflicts->at[conflicts->n++].fields = fields;
        conflicts->n_fields += hfd_fields_count(fields);
}

struct hfd_conflicts hfd_conflicts_find(struct hf__arena *scratch,
                                        const struct hfd_managers *managers,
                                        const struct hfd_manager *self,
                                        const struct hfd_fields *changed) {
        struct hfd_conflicts conflicts = {0};

        conflicts.at = hf__arena_alloc(scratch, managers->n * sizeof *conflicts.at);
        for (size_t i = 0; conflicts.at && i < managers->n; i++) {
                const struct hfd_manager *m = &managers->at[i];
                if (m != self)
                        add_conflict(&conflicts, m,
                                     hfd_fields_intersect(scratch, m->fields, changed));
        }
        if (conflicts.n > 1)
                qsort(conflicts.at, conflicts.n, sizeof conflicts.at[0], order_of_names);
        return conflicts;
}

struct hfd_conflicts hfd_conflicts_except(struct hf__arena *scratch,
                                          const struct hfd_conflicts *conflicts,
                                          const struct hfd_fields *allowed) {
        struct hfd_conflicts rest = {0};

        rest.at = hf__arena_alloc(scratch, conflicts->n * sizeof *rest.at);
        for (size_t i = 0; rest.at && i < conflicts->n; i++)
                add_conflict(&rest, &conflicts->at[i],
                             hfd_fields_subtract(scratch, conflicts->at[i].fields, allowed));
        return rest;
}

/* ---- the report ---- */

/* A path: its last step, and the place of the step before. */
struct place {
        const struct place *up;
        const struct hfd_step *step;
};

/* The report of all conflicts while it is being written. */
struct report {
        struct hfd_apply_failure *failure;
        /* The manager whose conflicts are being listed, as put_manager writes it. */
        const char *manager;
        size_t n_listed;
        bool one; /* there is only one conflict, so the message is one line */
        int error;
};

static void put_name(const char *name, bool quoted, struct hf__strbuf *out) {
        size_t n = strlen(name), end = 0;

        while (end < n && end < HFD_CONFLICTS_NAME_MAX)
                end = hf__utf8_next(name, n, end);
        if (quoted)
                hf__strbuf_json(out, name, end);
        else
                hf__strbuf_add(out, name, end);
        if (end < n)
                hf__strbuf_puts(out, "...");
}

/* `"m1" with subresource "status" using v1` */
static void put_manager(const struct hfd_manager *m, struct hf__strbuf *out) {
        put_name(m->name, true, out);
        if (*m->subresource) {
                hf__strbuf_puts(out, " with subresource ");
                put_name(m->subresource, true, out);
        }
        if (!m->applies) {
                hf__strbuf_puts(out, " using ");
                put_name(m->api_version, false, out);
        }
}

static void put_path(const struct place *place, struct hf__strbuf *out) {
        if (place->up)
                put_path(place->up, out);
        hfd_step_put_message(place->step, out);
}

/* Adds one conflict to the message and the causes. */
static int list_path(struct report *report, const char *path) {
        struct hfd_apply_failure *failure = report->failure;
        struct hf__json *cause = hf__json_object();
        struct hf__strbuf text = {0};
        int r;

        hf__strbuf_printf(&failure->message, report->one ? "%s" : "\n- %s", path);
        hf__strbuf_printf(&text, "conflict with %s", report->manager);
        r = hf__json_add_string(cause, "reason", "FieldManagerConflict");
        if (r == 0)
                r = text.error != 0 ? -ENOMEM : hf__json_add_string(cause, "message", text.data);
        if (r == 0)
                r = hf__json_add_string(cause, "field", path);
        hf__strbuf_done(&text);
        if (r == 0)
                return hf__json_append(failure->causes, cause);
        hf__json_free(cause);
        return r;
}

static void report_path(struct report *report, const struct place *place) {
        struct hf__strbuf path = {.max = HFD_CONFLICTS_PATH_MAX};

        if (report->error != 0 || report->n_listed++ >= HFD_CONFLICTS_LISTED_MAX)
                return;
        put_path(place, &path);
        if (path.error == HF_E_TOO_LARGE) { /* keep the beginning, which fits */
                path.error = 0;
                path.max = 0; /* no limit, for the dots */
                hf__strbuf_puts(&path, "...");
        }
        report->error = path.error != 0 ? -ENOMEM : list_path(report, path.data);
        hf__strbuf_done(&path);
}

/* Reports paths in Kubernetes' order: first those that end at this level, then longer ones. */
static void report_fields(struct report *report, const struct hfd_fields *fields,
                          const struct place *up) {
        for (size_t i = 0; fields && i < fields->n; i++)
                if (fields->at[i].member)
                        report_path(report, &(struct place){up, &fields->at[i].step});
        if (report->n_listed >= HFD_CONFLICTS_LISTED_MAX)
                return;
        for (size_t i = 0; fields && i < fields->n; i++)
                report_fields(report, fields->at[i].below,
                              &(struct place){up, &fields->at[i].step});
}

int hfd_conflicts_report(const struct hfd_conflicts *conflicts, struct hfd_apply_failure *failure) {
        struct report report = {.failure = failure, .one = conflicts->n_fields == 1};
        struct hf__strbuf *message = &failure->message;

        assert(conflicts->n > 0 && !failure->causes);
        failure->causes = hf__json_array();
        if (!failure->causes)
                return -ENOMEM;
        hf__strbuf_printf(message, "Apply failed with %zu conflict%s: ", conflicts->n_fields,
                          report.one ? "" : "s");
        for (size_t i = 0; i < conflicts->n && report.error == 0; i++) {
                struct hf__strbuf manager = {0};
                put_manager(&conflicts->at[i], &manager);
                report.manager = manager.data;
                hf__strbuf_printf(message, "%sconflict%s with %s:%s", i > 0 ? "\n" : "",
                                  report.one ? "" : "s", manager.data ? manager.data : "",
                                  report.one ? " " : "");
                if (manager.error != 0)
                        report.error = -ENOMEM;
                report_fields(&report, conflicts->at[i].fields, NULL);
                hf__strbuf_done(&manager);
                if (report.n_listed >= HFD_CONFLICTS_LISTED_MAX)
                        break;
        }
        return message->error != 0 ? -ENOMEM : report.error;
}

void hfd_apply_failure_done(struct hfd_apply_failure *failure) {
        hf__strbuf_done(&failure->message);
        failure->causes = hf__json_free(failure->causes);
}
