/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The parameters of a query string ("a=b&c=d"). Pure. Thread: any. */
#include <stdbool.h>
#include <stddef.h>

#include <holdfast/fence.h> /* HF_NAME_MAX */

/*
 * Decodes the value of the nth parameter (from 0) with this key; '+' is a space. A parameter
 * without '=' has the value "". max_value: the size of ret_value in bytes. 0; HF_E_NOT_FOUND;
 * HF_E_INVALID: the value is badly encoded or does not fit.
 */
int hfd_query_get(const char *query, const char *key, size_t nth, char *ret_value,
                  size_t max_value);
/*
 * A boolean parameter, as Kubernetes parses it: absent, "0" and "false" are false. Every other
 * value is true, also an empty one (`?watch`).
 */
bool hfd_query_bool(const char *query, const char *key);

/*
 * Whether fieldSelector selects one object by its name (metadata.name=x is one of its terms).
 * Copies x to ret_name.
 */
bool hfd_query_selected_name(const char *query, char ret_name[HF_NAME_MAX + 1]);
