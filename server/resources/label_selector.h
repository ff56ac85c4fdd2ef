/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A LabelSelector in an object (matchLabels, matchExpressions): whether it selects labels, and its
 * text. selection/selector.h has the selectors of requests. The JSON arguments may be NULL, which
 * means empty. Pure. Thread: any.
 */
#include <stdbool.h>

#include "base/json_index.h"

struct hf__json;
struct hf__strbuf;

/* An empty selector selects everything. */
bool hfd_label_selector_matches(const struct hf__json *selector, const struct hf__json *labels);
/* The labels of one object, prepared for several selectors: if the object has many labels, they get
 * an index. The struct must not be copied or moved (json_index.h). */
struct hfd_labels {
        const struct hf__json *all; /* borrowed until hfd_labels_done */
        struct hf__json_index index;
        bool is_indexed;
};
void hfd_labels_init(struct hfd_labels *labels, const struct hf__json *all);
void hfd_labels_done(struct hfd_labels *labels);
bool hfd_label_selector_selects(const struct hf__json *selector, const struct hfd_labels *labels);
/* Whether the map labels has all members of the map wanted, with the same values. */
bool hfd_labels_contain(const struct hf__json *labels, const struct hf__json *wanted);
/* Whether the selector has no requirement. */
bool hfd_label_selector_is_empty(const struct hf__json *selector);
/* Appends "a=b,c in (d,e),!f", sorted by the keys; nothing for an empty selector. */
void hfd_label_selector_print(const struct hf__json *selector, struct hf__strbuf *out);
/* Appends the selector of a map of labels: "a=b,c=d", sorted likewise. */
void hfd_labels_print(const struct hf__json *labels, struct hf__strbuf *out);
