/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Finds elements of lists by their identity: in a list of type set (x-kubernetes-list-type) the
 * whole element, in one of type map the values of its keys. An identity is a text
 * (compile/canonical_text.h), so that equal elements have equal texts. Pure. Thread: owner only.
 */
#include <stdbool.h>
#include <stddef.h>

#include "base/strbuf.h"

struct hf__json;

struct hfd_identity {
        const char *text;               /* in hfd_identities.texts */
        size_t index;                   /* of the element in its list */
        const struct hf__json *element; /* borrowed */
};
/* Elements sorted by identity, and by index where it is the same. */
struct hfd_identities {
        struct hfd_identity *list; /* owned */
        size_t n;
        struct hf__strbuf texts; /* owned; each text ends with a NUL */
};

/* Appends the identity of an element. keys: names that end with a NULL; NULL: the list is a set. An
 * absent key is not in the text, so it differs from a key that is null. 0 or -ENOMEM. */
int hfd_identity_print(const struct hf__json *element, const char *const *keys,
                       struct hf__strbuf *out);
/* Makes the identities of all elements of an array, which must not change before
 * hfd_identities_done. Takes n log n time. 0 or -ENOMEM. After a failure the texts are not set, so
 * hfd_identities_find must not be called, unless the caller sets n to 0. The caller calls
 * hfd_identities_done, also after a failure. */
int hfd_identities_init(struct hfd_identities *identities, const struct hf__json *array,
                        const char *const *keys);
void hfd_identities_done(struct hfd_identities *identities);
/* The first element with this identity; NULL = none. Takes logarithmic time. */
const struct hf__json *hfd_identities_find(const struct hfd_identities *identities,
                                           const char *text);
