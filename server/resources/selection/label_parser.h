/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Parses label selectors. Private to this folder. Pure. Thread: any. */
#include <stddef.h>

#include "server/resources/selection/requirement.h"

/*
 * Parses a label selector in place: keys and values point into text. requirements has space for
 * `space` of them, all {0}. *n gets their number. After an error it counts those that were begun,
 * too, and the caller frees the values of all n. 0, -ENOMEM, or HF_E_INVALID with Kubernetes'
 * message as the reason.
 */
int hfd_labels_parse(char *text, struct hfd_requirement *requirements, size_t space, size_t *n,
                     char *reason, size_t max_reason);
