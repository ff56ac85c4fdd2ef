/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Assertions about texts. They print the whole text if they fail. Thread: that of the test. */
#include <holdfast/metrics.h>

void assert_in(const char *text, const char *part);
/* The metrics, as /metrics shows them, contain this text. */
void assert_metric(struct hf_metrics *metrics, const char *line);
