/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Functions that read an informer, in addition to those of <holdfast/informer.h>. */
#include <stdbool.h>

#include <holdfast/informer.h>

/* Whether the informer has an object in that namespace. Uses a binary search, so it is fast for
 * large stores too. Thread: any. Takes the informer's lock for the search. */
bool hf__informer_has_in(struct hf_informer *informer, const char *ns);
