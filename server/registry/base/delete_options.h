/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* DeleteOptions: the options in the body of a delete request. Pure. Thread: owner only. */
#include <stdbool.h>

#include "server/registry/base/options.h"

struct hf__json;

/*
 * Reads a parsed body into options, which already contain the options of the query. A body replaces
 * propagationPolicy and orphanDependents of the query, even if it has neither. A dryRun in either
 * of the two counts. body NULL: the request has no body, and only the combination of options is
 * checked. False: response contains the failure (400, 422).
 *
 * The preconditions are not copied: the delete reads them from the body.
 */
bool hfd_delete_options_read(struct hfd_options *options, const struct hf__json *body,
                             struct hfd_response *response);
