/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* DeleteOptions: the options of a delete that come in its body. Pure. Thread: owner only. */
#include <stdbool.h>

#include "server/registry/options.h"

struct hf__json;

/*
 * Reads a body into options, which the query has filled already. A body replaces the propagation
 * policy of the query. sent NULL: there was no body, and only the combination is checked. False:
 * response says why not (400, 422).
 *
 * The preconditions stay in sent, where the delete finds them.
 */
bool hfd_delete_options_read(struct hfd_options *options, const struct hf__json *sent,
                             struct hfd_response *response);
