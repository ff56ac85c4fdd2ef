/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The causes of a 422. The texts must equal those of Kubernetes, because clients parse them.
 *
 * Invariant: every buffer has a fixed size and every text is cut to fit, because field names and
 * values come from the client.
 */
#include "server/resources/causes.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/quote.h"
#include "server/schema/equal.h"

#define QUOTED_TEXT_MAX 250 /* bytes of a text that are quoted */
#define QUOTED_MAX      300 /* bytes of a quoted text, with the quotes and the NUL */
#define ELEMENT_ROOM    72  /* bytes for an element of a quoted list, and for what encloses it */

bool hfd_causes_equal(struct hfd_causes *causes, const struct hf__json *a,
                      const struct hf__json *b) {
        bool equal;

        return hfd_causes_check(causes, hf__json_are_equal(a, b, &equal)) && equal;
}

bool hfd_causes_equal_by(struct hfd_causes *causes, const struct hfd_schema *schema,
                         const struct hf__json *a, const struct hf__json *b) {
        bool equal;

        return hfd_causes_check(causes, hfd_schema_are_equal(schema, a, b, &equal)) && equal;
}

bool hfd_causes_equal_member(struct hfd_causes *causes, const struct hfd_schema *schema,
                             const struct hf__json *a, const struct hf__json *b, const char *name) {
        bool equal;

        return hfd_causes_check(causes, hfd_schema_are_members_equal(schema, a, b, name, &equal)) &&
               equal;
}

/* Adds one cause. A full list drops it silently: the first causes already refuse the object. */
__attribute__((format(printf, 4, 5))) static void add_cause(struct hfd_causes *causes,
                                                            const char *reason, const char *field,
                                                            const char *format, ...) {
        va_list args;

        assert(causes->n <= HFD_CAUSES_MAX);
        if (causes->n == HFD_CAUSES_MAX)
                return;
        struct hfd_cause *cause = &causes->items[causes->n++];
        cause->reason = reason;
        (void)snprintf(cause->field, sizeof cause->field, "%s", field);
        va_start(args, format);
        (void)vsnprintf(cause->text, sizeof cause->text, format, args);
        va_end(args);
}

/* The formats below are those of Kubernetes' field.Error, without the field, which the response has
 * as a member of its own. A value is cut to 300 bytes, so that the detail after it, which says what
 * is wrong, still fits into a cause. */
void hfd_cause_invalid(struct hfd_causes *causes, const char *field, const char *value,
                       const char *detail) {
        add_cause(causes, "FieldValueInvalid", field, "Invalid value: %.300s: %s", value, detail);
}

void hfd_cause_invalid_text(struct hfd_causes *causes, const char *field, const char *text,
                            const char *detail) {
        char quoted[QUOTED_MAX];

        hfd_quote(text, quoted, sizeof quoted);
        hfd_cause_invalid(causes, field, quoted, detail);
}

void hfd_cause_invalid_each(struct hfd_causes *causes, const char *field, const char *text,
                            const char *const *details, size_t n) {
        for (size_t i = 0; i < n; i++)
                hfd_cause_invalid_text(causes, field, text, details[i]);
}

void hfd_cause_invalid_joined(struct hfd_causes *causes, const char *field, const char *text,
                              const char *before, const char *const *details, size_t n) {
        char joined[sizeof causes->items[0].text];
        size_t at;

        if (n == 0)
                return;
        (void)snprintf(joined, sizeof joined, "%s", before);
        for (size_t i = 0; i < n; i++) {
                at = strlen(joined);
                (void)snprintf(joined + at, sizeof joined - at, "%s%s", i > 0 ? "," : "",
                               details[i]);
        }
        hfd_cause_invalid_text(causes, field, text, joined);
}

void hfd_cause_type_invalid(struct hfd_causes *causes, const char *field, const char *value,
                            const char *detail) {
        add_cause(causes, "FieldValueTypeInvalid", field, "Invalid value: %.300s: %s", value,
                  detail);
}

void hfd_cause_add(struct hfd_causes *causes, const char *reason, const char *field,
                   const char *text) {
        add_cause(causes, reason, field, "%s", text);
}

void hfd_cause_unsupported(struct hfd_causes *causes, const char *field, const char *value,
                           const char *supported) {
        add_cause(causes, "FieldValueNotSupported", field,
                  "Unsupported value: %.300s: supported values: %s", value, supported);
}

void hfd_cause_unsupported_text(struct hfd_causes *causes, const char *field, const char *text,
                                const char *supported) {
        char quoted[QUOTED_MAX];

        hfd_quote(text, quoted, sizeof quoted);
        hfd_cause_unsupported(causes, field, quoted, supported);
}

void hfd_cause_duplicate(struct hfd_causes *causes, const char *field, const char *value) {
        add_cause(causes, "FieldValueDuplicate", field, "Duplicate value: %.300s", value);
}

void hfd_cause_duplicate_text(struct hfd_causes *causes, const char *field, const char *text) {
        char quoted[QUOTED_MAX];

        hfd_quote(text, quoted, sizeof quoted);
        hfd_cause_duplicate(causes, field, quoted);
}

void hfd_cause_not_found_text(struct hfd_causes *causes, const char *field, const char *text) {
        char quoted[QUOTED_MAX];

        hfd_quote(text, quoted, sizeof quoted);
        add_cause(causes, "FieldValueNotFound", field, "Not found: %.300s", quoted);
}

void hfd_cause_required(struct hfd_causes *causes, const char *field, const char *detail) {
        add_cause(causes, "FieldValueRequired", field, "Required value%s%s",
                  detail && *detail ? ": " : "", detail ? detail : "");
}

void hfd_cause_forbidden(struct hfd_causes *causes, const char *field, const char *detail) {
        add_cause(causes, "FieldValueForbidden", field, "Forbidden: %s", detail);
}

void hfd_cause_too_many(struct hfd_causes *causes, const char *field, size_t n, int64_t max) {
        add_cause(causes, "FieldValueTooMany", field,
                  "Too many: %zu: must have at most %" PRId64 " %s", n, max,
                  max == 1 ? "item" : "items");
}

void hfd_cause_too_long(struct hfd_causes *causes, const char *field, const char *detail) {
        add_cause(causes, "FieldValueTooLong", field, "Too long: %s", detail);
}

/* Only the beginning of a text is quoted, because a client may send megabytes. Escapes can make the
 * quoted text longer than out; then its last characters are left out, too. */
void hfd_quote(const char *text, char *out, size_t max_out) {
        assert(max_out > 0);
        hf__quote_bytes(text, strnlen(text, QUOTED_TEXT_MAX), out, max_out);
}

void hfd_quote_list(const struct hf__json *list, char *out, size_t max_out) {
        size_t n = 0;

        assert(max_out > ELEMENT_ROOM); /* the loop keeps this much space free, so n < max_out */
        out[n++] = '[';
        for (const struct hf__json *m = hf__json_first(list); m && n + ELEMENT_ROOM < max_out;
             m = hf__json_next(m)) {
                const char *text = hf__json_is_string(m) ? hf__json_text(m) : "";
                if (n > 1)
                        out[n++] = ',';
                /* The rest of the room is for the comma, and for "]" and the NUL at the end. */
                hf__quote_bytes(text, strnlen(text, 60), out + n, ELEMENT_ROOM - 4);
                n += strlen(out + n);
        }
        out[n++] = ']';
        out[n] = '\0';
}
