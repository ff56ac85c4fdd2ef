/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Label and field selectors: parsed once for each request, and matched against the parsed parts of
 * an object (hfd_object_selectable). A parsed selector is immutable. {0} selects everything. Apart
 * from the parsed parts, which a match keeps in the object, pure. Thread: any.
 */
#include <stdbool.h>
#include <stddef.h>

#include "server/resources/object.h"

#define HFD_REQUIREMENTS_MAX 64 /* per selector; a longer one is refused */

enum hfd_selector_op {
        HFD_EQUALS,
        HFD_NOT_EQUALS,
        HFD_IN,
        HFD_NOT_IN,
        HFD_EXISTS,
        HFD_NOT_EXISTS,
        HFD_GREATER,
        HFD_LESS
};

struct hfd_requirement {
        enum hfd_selector_op op;
        /* Points into text, or is static: a field has the name of the stored form. */
        const char *key;
        bool has_static_key;
        char **values; /* owned; pointers into text; NULL for HFD_EXISTS and HFD_NOT_EXISTS */
        size_t n_values;
};
struct hfd_selector {
        bool fields;                          /* true: a field selector; false: a label selector */
        char *text;                           /* owned; keys and values point into it */
        size_t n_text;                        /* bytes of text without the last NUL */
        struct hfd_requirement *requirements; /* owned; all of them must hold */
        size_t n;
};

/*
 * Parses a selector for objects of the resource. NULL or "" selects everything. 0; -ENOMEM; or
 * HF_E_INVALID: reason is the message for a 400.
 */
int hfd_selector_parse(const char *text, bool fields, const struct hfd_resource *resource,
                       struct hfd_selector *ret_selector, char *reason, size_t max_reason);
/* A copy that shares nothing. 0, or -ENOMEM: *ret_copy is {0}. */
int hfd_selector_copy(struct hfd_selector *ret_copy, const struct hfd_selector *selector);
/* Whether both have the same requirements in the same order. Both must be label selectors, or both
 * field selectors. */
bool hfd_selector_equal(const struct hfd_selector *a, const struct hfd_selector *b);
/* Frees what the selector owns, and resets it to {0}. */
void hfd_selector_done(struct hfd_selector *selector);
/* Whether all requirements hold. 0, or -ENOMEM: it is not known, and *ret_matches is false. */
int hfd_selector_matches(const struct hfd_selector *selector, struct hfd_object *object,
                         bool *ret_matches);
/*
 * The value that a field selector requires for metadata.name, borrowed; NULL = it requires none. A
 * list or watch with such a selector needs to look up one object only.
 */
const char *hfd_selector_name(const struct hfd_selector *selector);
