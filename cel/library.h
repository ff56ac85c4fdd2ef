/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The functions that expressions may call: an index that is made from tables of rows. Owner: the
 * code that makes it. Thread: any, because a finished index does not change.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cel/values/function.h"

struct hf__cel_library;

/* The library of Kubernetes, and the rows of the caller, which may be NULL: `extra` ends with a row
 * without a name, and lives as long as the library. 0, -ENOMEM, -EINVAL (a malformed signature). */
int hf__cel_library_new(const struct hf__cel_row *extra, struct hf__cel_library **ret_library);
void hf__cel_library_free(struct hf__cel_library *library); /* accepts NULL */

/* The overloads with this name; 0: there is no such function. */
size_t hf__cel_library_find(const struct hf__cel_library *library, const char *name,
                            const struct hf__cel_overload *const **ret_overloads);
/* Whether the arguments have the kinds that the overload takes. */
bool hf__cel_overload_takes(const struct hf__cel_overload *overload,
                            const struct hf__cel_value *args, unsigned n_args);
/* A type of the library that expressions may name, as in type(x) == net.IP. NULL: there is none of
 * this name. */
const struct hf__cel_type *hf__cel_library_type(const char *name);
