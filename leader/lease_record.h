/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The wire form of a record: a coordination.k8s.io/v1 Lease. Pure.
 *
 * A Lease has more fields than a record: foreign labels, annotations and owner references,
 * spec.strategy, spec.preferredHolder, fields of later versions. An update keeps them all, because
 * it starts from the last object seen.
 */
#include "leader/record.h"

struct hf__json;
struct hf__strbuf;

/* A piece of a Lease's text that is not kept: [from, to). Nothing is cut if the two are equal. */
struct hf__lease_cut {
        size_t from, to;
};

#define HF__SUCCESSOR_ANNOTATION "holdfast.dev/successor"
/* "<acquire time in microseconds since 1970> <holder> <description>": the description of the
 * process that holds the Lease (holder_lock.h). It counts only while the record has that acquire
 * time and that holder. */
#define HF__PROCESS_ANNOTATION   "holdfast.dev/holder-process"
#define HF__HAND_OVER_ANNOTATION "holdfast.dev/hand-over-to"

/* Finds metadata.managedFields with the comma before it. It is the largest part of a Lease, and a
 * server keeps its own managedFields if an update has none. Cuts nothing if metadata has no
 * managedFields, or has them as its first member. */
struct hf__lease_cut hf__lease_find_cut(const char *text, size_t n);
/* The spec and each of its fields may be absent. Without a holderIdentity no process holds the
 * Lease. HF_E_INVALID: lease is not a JSON object. */
int hf__lease_read(const struct hf__json *lease, struct hf__record *ret_record);
/*
 * Prints the Lease to write. last: the object as last seen; NULL = none was ever seen. If
 * record.exists is true, the result is last with the record's fields; else it is a new object that
 * only continues last's history. In the first case last itself is changed. A record that begins a
 * term (record.cause) adds an entry to the history. labels: "key=value", NULL-terminated, added;
 * may be NULL. process: describes this process in a record that begins a term; NULL = no
 * description. An error is left in out->error: -ENOMEM, or -EINVAL if a label has no '='.
 */
void hf__lease_write(struct hf__json *last, const char *ns, const char *name,
                     const struct hf__record *record, const char *const *labels,
                     const char *process, struct hf__strbuf *out);
/* Copies the description of the process that wrote the record of this holder and acquire time.
 * False: the Lease has none, or it has more than max - 1 bytes. */
bool hf__lease_process(const struct hf__json *lease, const char *holder, int64_t acquire_us,
                       char *process, size_t max);
