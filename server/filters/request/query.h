/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The parameters of a query string ("a=b&c=d"). Pure. Thread: any. */
#include <stdbool.h>
#include <stddef.h>

#include <holdfast/fence.h> /* HF_NAME_MAX */

/*
 * The value of the next parameter called key, decoded ('+' is a space). *cursor begins as the query
 * and moves past the parameter, so that reading all values passes over the query once. A
 * parameter without '=' has the value "". 0; HF_E_NOT_FOUND; HF_E_INVALID: badly encoded, or longer
 * than max_value - 1.
 */
int hfd_query_next(const char **cursor, const char *key, char *ret_value, size_t max_value);
/* The value of the first parameter called key; as hfd_query_next. */
int hfd_query_get(const char *query, const char *key, char *ret_value, size_t max_value);
/*
 * A boolean parameter, as Kubernetes parses it: absent, "0" and "false", in upper or lower case,
 * are false. Every other value is true, also an empty one (`?watch`) and one that cannot be
 * decoded.
 */
bool hfd_query_bool(const char *query, const char *key);

/*
 * Whether fieldSelector selects one object by its name (metadata.name=x is one of its terms).
 * Copies x to ret_name, without the backslashes of its escapes. False also for a selector that
 * cannot be decoded or has 1 KiB or more, and if x is empty, malformed, longer than a name may be,
 * or no segment of a path. ret_name has no meaning then.
 */
bool hfd_query_selected_name(const char *query, char ret_name[HF_NAME_MAX + 1]);
