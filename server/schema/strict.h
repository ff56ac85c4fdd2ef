/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The mistakes in a body that a strict decoder would refuse: unknown and duplicate fields. The
 * fieldValidation of a request decides whether they are refused, sent back as warnings, or ignored.
 * Thread: the owner of the arguments.
 */
#include <stdbool.h>

#include "base/strbuf.h"

struct hf__json;
struct hfd_place;
struct hfd_schema;

#define HFD_STRICT_MAX 100 /* mistakes that are reported, as in Kubernetes */

/* The mistakes that were found; {0} = none. `lines` has one line for each mistake, such as `unknown
 * field "spec.x"`. Only the duplicate fields of YAML are one mistake of several lines; each of them
 * after the first begins with a space. The owner checks lines.error when all mistakes are added,
 * and frees lines with hf__strbuf_done. */
struct hfd_strict {
        struct hf__strbuf lines;
        size_t n; /* mistakes */
};

/* A state of a struct hfd_strict, to which hfd_strict_rewind returns. */
struct hfd_strict_mark {
        size_t n, n_bytes;
};
struct hfd_strict_mark hfd_strict_mark(const struct hfd_strict *strict);
/* Forgets the mistakes that were added since the mark. lines.error stays. */
void hfd_strict_rewind(struct hfd_strict *strict, struct hfd_strict_mark mark);
/* Adds a mistake, unless there are HFD_STRICT_MAX already. problem: "unknown" or "duplicate". */
void hfd_strict_add(struct hfd_strict *strict, const char *problem, const struct hfd_place *place);
/*
 * Removes each member whose key occurs again later in the same object, because in Kubernetes'
 * decoder the last value wins. Adds each key that occurs more than once to strict, in the order of
 * the body; strict NULL = they are not reported. With a schema, keys in values that Go's decoder
 * does not look into are removed but not reported. Very long reports are cut short.
 *
 * schema: that of a body which Kubernetes decodes into a Go type; NULL = the value has none.
 * Kubernetes reports duplicate and unknown fields together, in the order of the body. So if a key
 * occurs twice, this function adds the unknown fields too, and returns 1: the caller need not look
 * for them.
 *
 * Takes n log n time. 0, 1, or -ENOMEM; strict->lines may have an error too.
 */
int hfd_strict_drop_duplicates(struct hf__json *json, const struct hfd_schema *schema,
                               struct hfd_strict *strict);
