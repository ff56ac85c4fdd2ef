/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A look at a cache's keys, for holdfastd's controllers. */
#include <holdfast/informer.h>

/* Whether any object of that namespace is known; a few comparisons, however many there are. Thread:
 * any. */
bool hf__informer_has_in(struct hf_informer *informer, const char *ns);
