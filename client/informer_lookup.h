/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Reading an informer, beside the functions of <holdfast/informer.h>. */
#include <stdbool.h>

#include <holdfast/informer.h>

/* Whether the informer has an object in that namespace: a binary search, no scan. Thread: any.
 * Never blocks for long. */
bool hf__informer_has_in(struct hf_informer *informer, const char *ns);
