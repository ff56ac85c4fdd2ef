/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The cost of calls when they are evaluated. Thread: the owner of the evaluation. */
#include <stdbool.h>

#include "cel/values/function.h"

/* Charges the cost of a call. false: the run has failed. */
bool hf__cel_overload_charge(const struct hf__cel_overload *overload, struct hf__cel_run *run,
                             const struct hf__cel_value *args);
/* Charges the new list that a call makes, and two comparisons of each element of `list` with every
 * other element. false: the run has failed. */
bool hf__cel_charge_pairs(struct hf__cel_run *run, const struct hf__cel_list *list);
