/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Functions that read an informer, in addition to those of <holdfast/informer.h>. */
#include <stdbool.h>

#include <holdfast/informer.h>

/* Whether the informer has an object in the namespace `ns`, which is neither NULL nor "". Takes
 * logarithmic time, and holds the informer's lock in the meantime. Thread: any. */
bool hf__informer_has_in(struct hf_informer *informer, const char *ns);
