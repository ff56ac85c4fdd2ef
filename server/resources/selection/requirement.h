/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One requirement of a selector: a key, an operator and values. The functions are private to this
 * folder. Pure. Thread: any.
 */
#include <stdbool.h>
#include <stddef.h>

#define HFD_SELECTOR_SPACES " \t\r\n" /* white space in label selectors */

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
        /* Points into the selector's text, or is static (has_static_key): the key of a field is its
         * name in the stored form, which may differ from the name in the text. */
        const char *key;
        bool has_static_key;
        /* An owned array of pointers into the text. NULL for HFD_EXISTS, HFD_NOT_EXISTS. */
        char **values;
        size_t n_values;
};

/* Parses the requirement `term` of a field selector, in place. *requirement is {0}; after an error,
 * too, the caller frees its values. The reason may quote `text`, the whole selector. The key may be
 * any text: selectable_fields.h tells whether the field is supported. 0, -ENOMEM, or HF_E_INVALID
 * with the reason. */
int hfd_requirement_parse_field(struct hfd_requirement *requirement, char *term, const char *text,
                                char *reason, size_t max_reason);
/* Sorts texts by their bytes, as Kubernetes sorts terms and values. */
void hfd_sort_texts(char **texts, size_t n);
/* Whether the text is a whole number, as the values of < and > are. */
bool hfd_is_bound(const char *text);
/* Whether both have the same key and operator, and the same values in the same order. */
bool hfd_requirement_equal(const struct hfd_requirement *a, const struct hfd_requirement *b);
/* Whether the requirement holds for a value; NULL = the label is absent. As in Kubernetes, an
 * absent label satisfies != and notin. */
bool hfd_requirement_holds(const struct hfd_requirement *requirement, const char *value);
