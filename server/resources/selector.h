/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Label and field selectors: parsed once per call, matched against an object's lazily parsed parts.
 * Pure.
 */
#include <stdbool.h>
#include <stddef.h>

#include "server/resources/object.h"

#define HFD_REQUIREMENTS_MAX 64

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
        const char *key; /* into text */
        char **values;   /* owned; pointers into text */
        size_t n_values;
};
struct hfd_selector {
        bool fields; /* a field selector */
        char *text;  /* owned; cut into the strings the requirements point to */
        struct hfd_requirement *requirements; /* owned */
        size_t n;
};

/* 0, -ENOMEM, or HF_E_INVALID with the words of a 400 in reason. Empty text selects everything. */
int hfd_selector_parse(const char *text, bool fields, const struct hfd_resource *resource,
                       struct hfd_selector *ret_selector, char *reason, size_t max_reason);
void hfd_selector_done(struct hfd_selector *selector);
bool hfd_selector_matches(const struct hfd_selector *selector, struct hfd_object *object);
/* The value that `metadata.name=` demands; NULL = none. */
const char *hfd_selector_name(const struct hfd_selector *selector);
