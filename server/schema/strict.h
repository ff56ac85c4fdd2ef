/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a strict decoder would refuse in a body: unknown and duplicate fields. A request's
 * fieldValidation decides whether they are refused, sent back as warnings, or not mentioned.
 * Thread: the owner of the arguments.
 */
#include <stdbool.h>

#include "base/strbuf.h"

struct hf__json;
struct hfd_place;

#define HFD_STRICT_MAX 100 /* mistakes that are reported, as in Kubernetes */

/* All zero = nothing found. `lines`: one line for each mistake, `unknown field "spec.x"`. The owner
 * checks lines.error once it is complete, and frees it with hf__strbuf_done. */
struct hfd_strict {
        struct hf__strbuf lines;
        size_t n;
};

/* A state of a hfd_strict, to which it can be set back. */
struct hfd_strict_mark {
        size_t n, n_bytes;
};
struct hfd_strict_mark hfd_strict_mark(const struct hfd_strict *strict);
/* Forgets what was added since the mark. */
void hfd_strict_rewind(struct hfd_strict *strict, struct hfd_strict_mark mark);
/* problem: "unknown" or "duplicate". Beyond HFD_STRICT_MAX it does nothing. */
void hfd_strict_add(struct hfd_strict *strict, const char *problem, const struct hfd_place *place);
/*
 * Removes each member whose key occurs again later in the same object, as Kubernetes' decoder does:
 * the last value wins. Adds each key that occurs more than once to strict; NULL = does not report.
 * Takes n log n time. 0 or -ENOMEM; strict->lines may have an error too.
 */
int hfd_strict_drop_duplicates(struct hf__json *json, struct hfd_strict *strict);
