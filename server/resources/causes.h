/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Collects what validation found wrong with an object: the causes of a 422 (metav1.StatusCause).
 * Reasons and texts are those of Kubernetes' field.Error, which clients parse. Thread: owner only.
 *
 * At most HFD_CAUSES_MAX causes are kept, so that a client cannot make the response large. Further
 * causes are dropped, and texts are cut to fit. The struct is large, so hfd_causes_init does not
 * touch the items; an item is not read before it is added. No function fails.
 *
 * A rule that needs memory and gets none cannot say whether the object is valid. It notes that in
 * `error`. The caller of the rules checks `error` first: if it is not 0, the causes are incomplete,
 * and the response is 500.
 */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hf__json;
struct hfd_schema;

#define HFD_CAUSES_MAX 16

struct hfd_cause {
        const char *reason; /* static storage: "FieldValueInvalid" */
        char field[160];    /* path of the field: "spec.leaseName" */
        char text[760];     /* "Invalid value: 0: must be greater than 0" */
};
struct hfd_causes {
        size_t n;
        int error; /* 0, or -ENOMEM: a rule was not checked, because memory ran out */
        struct hfd_cause items[HFD_CAUSES_MAX];
};

static inline void hfd_causes_init(struct hfd_causes *causes) {
        causes->n = 0;
        causes->error = 0;
}
/* Notes that a rule was not checked. */
static inline void hfd_causes_no_memory(struct hfd_causes *causes) { causes->error = -ENOMEM; }
/* Whether r, the result of a function that a rule needs, is 0. Notes -ENOMEM. */
static inline bool hfd_causes_check(struct hfd_causes *causes, int r) {
        if (r == -ENOMEM)
                hfd_causes_no_memory(causes);
        return r == 0;
}
/* Whether a and b are equal. If memory runs out, notes that, and returns false. */
bool hfd_causes_equal(struct hfd_causes *causes, const struct hf__json *a,
                      const struct hf__json *b);
/* The same, but by a schema, as Kubernetes compares what an update must not change
 * (schema/equal.h). The first function compares two values of this schema; the second one compares
 * the members `name` of two values of this schema. */
bool hfd_causes_equal_by(struct hfd_causes *causes, const struct hfd_schema *schema,
                         const struct hf__json *a, const struct hf__json *b);
bool hfd_causes_equal_member(struct hfd_causes *causes, const struct hfd_schema *schema,
                             const struct hf__json *a, const struct hf__json *b, const char *name);

/* "Invalid value: VALUE: DETAIL". The caller passes value as Go prints it ("\"x\"", "0"). */
void hfd_cause_invalid(struct hfd_causes *causes, const char *field, const char *value,
                       const char *detail);
/* The same for a text, which the function quotes. */
void hfd_cause_invalid_text(struct hfd_causes *causes, const char *field, const char *text,
                            const char *detail);
/* One such cause for each of the n details. */
void hfd_cause_invalid_each(struct hfd_causes *causes, const char *field, const char *text,
                            const char *const *details, size_t n);
/* One such cause for all n details, with a comma between two, and `before` before them. None if n
 * is 0. */
void hfd_cause_invalid_joined(struct hfd_causes *causes, const char *field, const char *text,
                              const char *before, const char *const *details, size_t n);
/* As hfd_cause_invalid, with the reason FieldValueTypeInvalid: the value has a wrong type. */
void hfd_cause_type_invalid(struct hfd_causes *causes, const char *field, const char *value,
                            const char *detail);
/* Any other cause. text: the whole message. reason: static storage. */
void hfd_cause_add(struct hfd_causes *causes, const char *reason, const char *field,
                   const char *text);
/* "Unsupported value: VALUE: supported values: SUPPORTED". The caller passes value as Go prints it.
 */
void hfd_cause_unsupported(struct hfd_causes *causes, const char *field, const char *value,
                           const char *supported);
/* The same for a text, which the function quotes. */
void hfd_cause_unsupported_text(struct hfd_causes *causes, const char *field, const char *text,
                                const char *supported);
/* "Duplicate value: VALUE". The caller passes value as Go prints it. */
void hfd_cause_duplicate(struct hfd_causes *causes, const char *field, const char *value);
/* The same for a text, which the function quotes. */
void hfd_cause_duplicate_text(struct hfd_causes *causes, const char *field, const char *text);
/* "Not found: VALUE". The function quotes the text. */
void hfd_cause_not_found_text(struct hfd_causes *causes, const char *field, const char *text);
/* "Required value" or "Required value: DETAIL". detail: NULL or "" = none. */
void hfd_cause_required(struct hfd_causes *causes, const char *field, const char *detail);
/* "Forbidden: DETAIL". */
void hfd_cause_forbidden(struct hfd_causes *causes, const char *field, const char *detail);
/* "Too many: N: must have at most MAX items"; "1 item" if max is 1. */
void hfd_cause_too_many(struct hfd_causes *causes, const char *field, size_t n, int64_t max);
/* "Too long: DETAIL". */
void hfd_cause_too_long(struct hfd_causes *causes, const char *field, const char *detail);

/* Formats a value for a cause: text in quotes, cut to 250 bytes. out has max_out bytes, at least 3,
 * and the result is cut to fit. */
void hfd_quote(const char *text, char *out, size_t max_out);
/* The same for an array of strings, each cut to 60 bytes: `["a","b"]`. Elements that do not fit are
 * left out. max_out is at least 80. */
void hfd_quote_list(const struct hf__json *list, char *out, size_t max_out);
