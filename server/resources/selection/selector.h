/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Label and field selectors. A request parses its selectors once, and matches them against the
 * parsed parts of each object (hfd_object_selectable). A parsed selector is immutable. {0} selects
 * everything. Pure, except that the first match of an object parses the parts and keeps them in the
 * object. Thread: any.
 */
#include <stdbool.h>
#include <stddef.h>

#include "server/resources/objects/object.h"
#include "server/resources/selection/requirement.h"

#define HFD_REQUIREMENTS_MAX 64 /* per selector; one that has more is refused */

struct hfd_selector {
        bool fields;                          /* true: a field selector; false: a label selector */
        char *text;                           /* owned; values and non-static keys point into it */
        size_t n_text;                        /* bytes of text without the last NUL */
        struct hfd_requirement *requirements; /* owned; all of them must hold */
        size_t n;
};

/*
 * Parses a selector for objects of the resource, which is the row that the client has named. text
 * NULL or "" selects everything, and so does a label selector of white space. 0: the caller frees
 * *ret_selector by hfd_selector_done. -ENOMEM, or HF_E_INVALID: reason is the message for a 400.
 * After an error *ret_selector is unchanged.
 */
int hfd_selector_parse(const char *text, bool fields, const struct hfd_resource *resource,
                       struct hfd_selector *ret_selector, char *reason, size_t max_reason);
/* A copy that shares nothing but static keys. 0, or -ENOMEM: *ret_copy is {0}. */
int hfd_selector_copy(struct hfd_selector *ret_copy, const struct hfd_selector *selector);
/* Whether both have the same requirements in the same order. Both must be label selectors, or both
 * field selectors. */
bool hfd_selector_equal(const struct hfd_selector *a, const struct hfd_selector *b);
/* Frees what the selector owns, and resets it to {0}. */
void hfd_selector_done(struct hfd_selector *selector);
/* Whether all requirements hold for the object, which is in the stored form. 0, or -ENOMEM: the
 * result is not known, and *ret_matches is false. */
int hfd_selector_matches(const struct hfd_selector *selector, struct hfd_object *object,
                         bool *ret_matches);
/*
 * The name that a field selector requires (metadata.name=...), borrowed from the selector; NULL =
 * it requires none. A list or a watch of one namespace needs to look up only the object of this
 * name.
 */
const char *hfd_selector_name(const struct hfd_selector *selector);
/*
 * The namespace that has all selected objects: ns, or, if ns is "" (all namespaces), the one that a
 * field selector requires (metadata.namespace=...). Borrowed from the selector or ns; "" = any.
 * Objects in other namespaces need not be looked up. A required name longer than HF_NAME_MAX is
 * ignored, so the result always fits hfd_object_scope.
 */
const char *hfd_selector_namespace(const struct hfd_selector *selector, const char *ns);
/* The value that a field selector requires of the trigger of its resource (hfd_selectable_trigger),
 * borrowed from the selector; NULL = it requires none, or there is no trigger. */
const char *hfd_selector_trigger(const struct hfd_selector *selector,
                                 const struct hfd_resource *resource);
