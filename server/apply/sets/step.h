/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One step of a path to a field of an object: the name of a member, or the identity of an element
 * of a list. In FieldsV1 steps are written as
 *
 *      f:name                        the member of an object
 *      k:{"name":"a","port":80}      the element of a list (type map) with these keys
 *      v:"text"                      the element of a list (type set) with this value
 *      i:0                           the element at this index; only other programs make it
 *
 * Texts in a step are borrowed from the JSON value from which it was made, or from its schema, or
 * are in memory of scratch. Pure. Thread: owner only.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hf__json;
struct hf__strbuf;
struct hf__arena;

/* The order of these enumerators, and of those of hfd_step_kind, is the order of the steps in
 * FieldsV1. */
enum hfd_scalar_type {
        HFD_SCALAR_INTEGER,
        HFD_SCALAR_DOUBLE, /* a number that is no int64_t; sorted by value among the integers */
        HFD_SCALAR_TEXT,
        HFD_SCALAR_BOOLEAN,
        HFD_SCALAR_NULL
};

struct hfd_scalar {
        enum hfd_scalar_type type;
        union {
                int64_t integer;
                double number;
                const char *text;
                bool boolean;
        };
};

struct hfd_step_key {
        const char *name;
        struct hfd_scalar value;
};

enum hfd_step_kind { HFD_STEP_FIELD, HFD_STEP_KEY, HFD_STEP_VALUE, HFD_STEP_INDEX };

struct hfd_step {
        enum hfd_step_kind kind;
        unsigned n_keys; /* of KEY: at least 1 */
        union {
                const char *name;                /* of FIELD */
                const struct hfd_step_key *keys; /* of KEY: sorted by name */
                const struct hfd_scalar *value;  /* of VALUE */
                int64_t index;                   /* of INDEX */
        };
};

/* < 0, 0 or > 0: the order in which FieldsV1 lists steps. */
int hfd_step_compare(const struct hfd_step *a, const struct hfd_step *b);
/* False: json is an object or an array. The text is borrowed from json. */
bool hfd_scalar_of(const struct hf__json *json, struct hfd_scalar *ret_scalar);

/*
 * Parses a key of FieldsV1. The result borrows from text. 0; -ENOMEM; HF_E_NOT_FOUND: the kind of
 * the step is unknown, and the caller ignores it; HF_E_INVALID: the text is malformed.
 */
int hfd_step_parse(struct hf__arena *scratch, const char *text, struct hfd_step *ret_step);
/* Appends the key of FieldsV1. */
void hfd_step_put(const struct hfd_step *step, struct hf__strbuf *out);
/* Appends the step as messages show it: `.name`, `[name="a",port=80]`, `[="text"]`, `[0]`. */
void hfd_step_put_message(const struct hfd_step *step, struct hf__strbuf *out);
