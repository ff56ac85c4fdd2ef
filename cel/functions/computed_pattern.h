/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The patterns that an evaluation computes. Owner: the run. Thread: the run's. */
#include "cel/values/value.h"

struct hf__cel_regex;
struct hf__cel_run;

/* The compiled form of a pattern, which is a STRING. A valid pattern is compiled once in a run, an
 * invalid one at each call; compiling is charged, and so is finding the pattern at each call. NULL:
 * *ret_error is why. */
const struct hf__cel_regex *hf__cel_computed_pattern(struct hf__cel_run *run,
                                                     struct hf__cel_value pattern,
                                                     struct hf__cel_value *ret_error);
