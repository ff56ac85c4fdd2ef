/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The annotation in which `kubectl apply` without --server-side keeps the configuration that it has
 * applied. For the manager of `kubectl apply --server-side`, the server accepts the annotation's
 * fields without conflicts, and keeps the annotation up to date, so that users can go back. Thread:
 * owner only.
 */
#include "server/apply/sets/fields.h"

struct hf__json;
struct hfd_schema;

/* The name of the manager of `kubectl apply --server-side`. */
#define HFD_LAST_APPLIED_MANAGER "kubectl"

/*
 * The fields in live that still have the values in the annotation. NULL: there are none, the
 * annotation is malformed or of another api_version, or there was no memory to parse it. The set
 * borrows texts from *ret_parsed, which the caller frees after the set's last use. When memory is
 * exhausted, scratch->failed is set.
 */
const struct hfd_fields *hfd_last_applied_fields(struct hf__arena *scratch,
                                                 const struct hfd_schema *schema,
                                                 const struct hf__json *live,
                                                 const char *api_version,
                                                 struct hf__json **ret_parsed);
/* If object has the annotation, and it is not empty, writes config into it, without config's own
 * annotation; or removes it if the annotations would be too large. 0 or -ENOMEM. */
int hfd_last_applied_update(struct hf__json *object, const struct hf__json *config);
