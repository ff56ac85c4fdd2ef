/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The order of lists, for the function sort and the macro sortBy. Pure, except that it changes the
 * run. Thread: the owner of the evaluation. */
#include "cel/values/run.h"

/* The function that cel-go makes of sortBy; its overloads say which keys can be sorted. */
#define HF__CEL_SORT_BY "@sortByAssociatedKeys"

/* Sorts the elements of a list by the keys, one for each element. Elements with equal keys keep
 * their order. Returns an error value if a key is one, if the keys have no order or several types,
 * or if the run has failed. The caller has charged the call. */
struct hf__cel_value hf__cel_sort_by(struct hf__cel_run *run, const struct hf__cel_list *list,
                                     const struct hf__cel_list *keys);
