/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The barrier at the beginning of a term, for the controllers' loop. */
#include <holdfast/informer.h>

/*
 * hf_informer_wait_all with the revision of the acquiring write. Where all collections share one
 * revision the watches are given a moment before anything is asked: holdfastd's own client is told
 * by each of them, when a Lease changes hands, how far it is. The lists that are saved would come
 * out of the new term's first milliseconds. A foreign server's revision that is no number is waited
 * for by a consistent list.
 */
int hf__informer_wait_term(struct hf_informer *const *informers, size_t n_informers,
                           const char *resource_version, struct hf_cancel *token);
