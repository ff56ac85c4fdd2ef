/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What validation found wrong with an object: the causes of a 422 (metav1.StatusCause). Reasons and
 * texts are those of Kubernetes' field.Error, which clients parse. Thread: owner only.
 *
 * At most HFD_CAUSES_MAX causes are kept, so that a client cannot make the response large. Further
 * causes are dropped. To initialize a struct hfd_causes, set n to 0; the items are not read before
 * they are added.
 */
#include <stddef.h>
#include <stdint.h>

struct hf__json;

#define HFD_CAUSES_MAX 16

struct hfd_cause {
        const char *reason; /* static storage: "FieldValueInvalid" */
        char field[160];    /* path of the field: "spec.leaseName" */
        char text[760];     /* "Invalid value: 0: must be greater than 0" */
};
struct hfd_causes {
        size_t n;
        struct hfd_cause items[HFD_CAUSES_MAX];
};

/* "Invalid value: VALUE: DETAIL". value is printed as Go prints it ("\"x\"", "0"). */
void hfd_cause_invalid(struct hfd_causes *causes, const char *field, const char *value,
                       const char *detail);
/* The same for a text, which is quoted here. */
void hfd_cause_invalid_text(struct hfd_causes *causes, const char *field, const char *text,
                            const char *detail);
/* The same for a value of a wrong type. Its reason is FieldValueTypeInvalid. */
void hfd_cause_type_invalid(struct hfd_causes *causes, const char *field, const char *value,
                            const char *detail);
/* Any other, with its whole text. reason: static storage. */
void hfd_cause_add(struct hfd_causes *causes, const char *reason, const char *field,
                   const char *text);
/* "Unsupported value: VALUE: supported values: SUPPORTED". */
void hfd_cause_unsupported(struct hfd_causes *causes, const char *field, const char *value,
                           const char *supported);
/* The same for a text, which is quoted here. */
void hfd_cause_unsupported_text(struct hfd_causes *causes, const char *field, const char *text,
                                const char *supported);
/* "Duplicate value: VALUE". */
void hfd_cause_duplicate(struct hfd_causes *causes, const char *field, const char *value);
/* The same for a text, which is quoted here. */
void hfd_cause_duplicate_text(struct hfd_causes *causes, const char *field, const char *text);
/* "Not found: VALUE". The text is quoted here. */
void hfd_cause_not_found_text(struct hfd_causes *causes, const char *field, const char *text);
/* "Required value" or "Required value: DETAIL". detail: NULL or "" = none. */
void hfd_cause_required(struct hfd_causes *causes, const char *field, const char *detail);
/* "Forbidden: DETAIL". */
void hfd_cause_forbidden(struct hfd_causes *causes, const char *field, const char *detail);
/* "Too many: N: must have at most MAX items". */
void hfd_cause_too_many(struct hfd_causes *causes, const char *field, size_t n, int64_t max);
/* "Too long: DETAIL". */
void hfd_cause_too_long(struct hfd_causes *causes, const char *field, const char *detail);

/* Formats a value for a cause: text in quotes, cut to 250 bytes. */
void hfd_quote(const char *text, char *out, size_t max_out);
/* The same for an array of strings, each cut to 60 bytes: `["a","b"]`. Elements that do not fit are
 * left out. */
void hfd_quote_list(const struct hf__json *list, char *out, size_t max_out);
