/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* DeleteOptions: the options in the body of a delete request. Pure. Thread: owner only. */
#include <stdbool.h>
#include <stddef.h>

#include "server/registry/base/options.h"

struct hf__json;
struct hf__strbuf;

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
/*
 * For a deletecollection: prints to text the body that each of its deletes gets. The text has the
 * members of body, which hfd_delete_options_read has accepted, except kind, apiVersion, dryRun and
 * unknown ones: each delete parses the text, so it is kept short. If no member remains, nothing is
 * printed. Changes body, in which no key may occur twice. 0, -ENOMEM, or HF_E_INVALID with the
 * reason.
 */
int hfd_delete_options_print(struct hf__json *body, struct hf__strbuf *text, char *reason,
                             size_t max_reason);
