/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The tables of functions; each ends with a row without a name. Immutable. */
#include "cel/values/function.h"

extern const struct hf__cel_row hf__cel_operators[];
extern const struct hf__cel_row hf__cel_arithmetic[];
extern const struct hf__cel_row hf__cel_conversions[];
extern const struct hf__cel_row hf__cel_times[];
extern const struct hf__cel_row hf__cel_strings[];
extern const struct hf__cel_row hf__cel_formats[];
extern const struct hf__cel_row hf__cel_semvers[];
extern const struct hf__cel_row hf__cel_authorizers[];
extern const struct hf__cel_row hf__cel_lists[];
extern const struct hf__cel_row hf__cel_list_shapes[];
extern const struct hf__cel_row hf__cel_sets[];
extern const struct hf__cel_row hf__cel_regexes[];
extern const struct hf__cel_row hf__cel_optionals[];
extern const struct hf__cel_row hf__cel_networks[];

/* The index args[0][args[1]] (optional: args[0][?args[1]]) for values that none of its overloads
 * takes. As in cel-go a value that is no container has no elements, so the second form gives an
 * empty optional. */
struct hf__cel_value hf__cel_index_any(struct hf__cel_run *run, const struct hf__cel_value *args,
                                       bool optional);

/* The types of addresses, blocks and versions. */
extern const struct hf__cel_type hf__cel_ip_type;
extern const struct hf__cel_type hf__cel_cidr_type;
extern const struct hf__cel_type hf__cel_semver_type;
