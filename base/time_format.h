/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The time formats of the wire (apimachinery's MicroTime and Time) and of flags (Go durations).
 * Pure.
 */
#include <stdbool.h>
#include <stdint.h>

#include <holdfast/clock.h>

#define HF__MICROTIME_MAX 32

/* "2026-11-21T02:36:00.000000Z", exactly six digits, from microseconds since 1970 UTC. text has
 * HF__MICROTIME_MAX bytes. */
void hf__microtime_format(int64_t usec, char *text);
/* Accepts only that form, with Z or +hh:mm / -hh:mm. 0 or -EINVAL. */
int hf__microtime_parse(const char *text, int64_t *ret_usec);
/* "2026-11-21T02:36:00Z", seconds (creationTimestamp). */
void hf__time_format(int64_t sec, char *text);
int hf__time_parse(const char *text, int64_t *ret_sec);

/* "15s", "1m30s", "250ms", "1.5h", "0"; what Go's duration syntax accepts, not negative. 0 or
 * -EINVAL. */
int hf__duration_parse(const char *text, hf_nsec *ret_duration);
/* Go's form: "1m30s", "15s", "250ms". text has 32 bytes. */
void hf__duration_format(hf_nsec duration, char *text);
