/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The labels that the selectors of one request read. Many webhooks and policies may ask for those
 * of a large object, so the first one makes an index of them for all.
 *
 * Owner: the caller, who does not move the struct. Thread: owner only; it may move from thread to
 * thread. Blocks: never.
 */
#include "server/resources/label_selector.h"

struct hf__json;
struct hfd_object;

enum hfd_labels_of { HFD_LABELS_OBJECT, HFD_LABELS_OLD, HFD_LABELS_NAMESPACE, HFD_N_LABELS };

/* Begins as {0}. */
struct hfd_request_labels {
        const struct hf__json *of[HFD_N_LABELS]; /* whose labels; borrowed; NULL: not made yet */
        struct hfd_labels labels[HFD_N_LABELS];
        struct hfd_object *ns; /* owned reference; of[HFD_LABELS_NAMESPACE] points into it */
};

/* The labels of `object`, which is the new object (HFD_LABELS_OBJECT) or the old one
 * (HFD_LABELS_OLD). The result is valid until the next call with the same `which` and another
 * object, or until the labels are forgotten. Never NULL. */
const struct hfd_labels *hfd_request_labels_get(struct hfd_request_labels *labels,
                                                enum hfd_labels_of which,
                                                const struct hf__json *object);
/* The labels of a stored Namespace, which keeps them parsed (hfd_object_selectable). NULL: out of
 * memory. */
const struct hfd_labels *hfd_request_labels_of_namespace(struct hfd_request_labels *labels,
                                                         struct hfd_object *ns);
/* Forgets the labels of the objects. Call it before one of them changes or is freed: another one
 * might get its address. */
void hfd_request_labels_forget(struct hfd_request_labels *labels);
/* Forgets all labels. Idempotent. */
void hfd_request_labels_done(struct hfd_request_labels *labels);
