/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps the labels of a request's objects (request_labels.h).
 *
 * Invariant: labels are found by the address of their object, so they are forgotten before it is
 * freed; the Namespace, which belongs to the cache, is kept by a reference.
 */
#include "server/admission/matching/request_labels.h"

#include "base/json.h"
#include "server/resources/objects/object.h"

static void drop(struct hfd_request_labels *labels, enum hfd_labels_of which) {
        if (labels->of[which])
                hfd_labels_done(&labels->labels[which]);
        labels->of[which] = NULL;
}

static const struct hfd_labels *get_labels(struct hfd_request_labels *labels,
                                           enum hfd_labels_of which, const struct hf__json *owner,
                                           const struct hf__json *all) {
        if (labels->of[which] == owner)
                return &labels->labels[which];
        drop(labels, which);
        hfd_labels_init(&labels->labels[which], all);
        labels->of[which] = owner;
        return &labels->labels[which];
}

const struct hfd_labels *hfd_request_labels_get(struct hfd_request_labels *labels,
                                                enum hfd_labels_of which,
                                                const struct hf__json *object) {
        return get_labels(labels, which, object, hf__json_path(object, "metadata.labels"));
}

const struct hfd_labels *hfd_request_labels_of_namespace(struct hfd_request_labels *labels,
                                                         struct hfd_object *ns) {
        const struct hf__json *kept = hfd_object_selectable(ns);

        if (!kept)
                return NULL;
        if (labels->ns != ns) {
                drop(labels, HFD_LABELS_NAMESPACE);
                hfd_object_unref(labels->ns);
                labels->ns = hfd_object_ref(ns);
        }
        return get_labels(labels, HFD_LABELS_NAMESPACE, kept, hf__json_get(kept, "labels"));
}

void hfd_request_labels_forget(struct hfd_request_labels *labels) {
        drop(labels, HFD_LABELS_OBJECT);
        drop(labels, HFD_LABELS_OLD);
}

void hfd_request_labels_done(struct hfd_request_labels *labels) {
        hfd_request_labels_forget(labels);
        drop(labels, HFD_LABELS_NAMESPACE);
        hfd_object_unref(labels->ns);
        labels->ns = NULL;
}
