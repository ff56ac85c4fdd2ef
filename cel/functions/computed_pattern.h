/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The patterns that an evaluation computes. Owner: the run. Thread: the run's. */
#include "cel/values/value.h"

struct hf__cel_regex;
struct hf__cel_run;

/* The compiled pattern, a STRING. Each text is compiled once in a run, and only that is charged;
 * another call pays for finding it. NULL: *ret_error is why. */
const struct hf__cel_regex *hf__cel_computed_pattern(struct hf__cel_run *run,
                                                     struct hf__cel_value pattern,
                                                     struct hf__cel_value *ret_error);
