/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The wire form of a record: a coordination.k8s.io/v1 Lease. Pure.
 *
 * What a record does not carry (labels, annotations and owner references of others, spec.strategy,
 * spec.preferredHolder, fields of later versions) is kept on every update, because an update starts
 * from the object as it was last seen.
 */
#include "leader/record.h"

struct hf__json;
struct hf__strbuf;

#define HF__SUCCESSOR_ANNOTATION "holdfast.dev/successor"
#define HF__HAND_OVER_ANNOTATION "holdfast.dev/hand-over-to"

/* Any field of the spec may be absent, and the spec itself: then nobody holds it. HF_E_INVALID when
 * it is no object. */
int hf__lease_read(const struct hf__json *lease, struct hf__record *ret_record);
/*
 * last: the object to update; where record.exists is false a new one is made and last, as it was
 * before it was deleted, gives it its history; NULL = there was none. A record that begins a term
 * (record.cause) adds to the history. labels: "key=value", NULL-terminated, put on top; may be
 * NULL. Writes the object's text; -ENOMEM is left in out->error.
 */
void hf__lease_write(const struct hf__json *last, const char *ns, const char *name,
                     const struct hf__record *record, const char *const *labels,
                     struct hf__strbuf *out);
