/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Times as text: Kubernetes' MicroTime and Time, which objects contain, and Go's durations, which
 * flags and manifests use. Pure. Thread: any.
 */
#include <stdbool.h>
#include <stdint.h>

#include <holdfast/clock.h>

#define HF__MICROTIME_MAX 32

/* Writes "2026-11-21T02:36:00.000000Z", always with six decimals, from microseconds since 1970 UTC.
 * text has HF__MICROTIME_MAX bytes. Times outside the years 1 to 9999 are clamped. */
void hf__microtime_format(int64_t usec, char *text);
/* Accepts exactly that form, with Z, +hh:mm or -hh:mm as the zone. 0 or -EINVAL. */
int hf__microtime_parse(const char *text, int64_t *ret_usec);

/* The same without decimals, "2026-11-21T02:36:00Z", from seconds (creationTimestamp). */
void hf__time_format(int64_t sec, char *text);
int hf__time_parse(const char *text, int64_t *ret_sec);

/* Parses a duration as Go's time.ParseDuration does, except that a minus sign is refused: "15s",
 * "1m30s", "250ms", "1.5h", "0". 0 or -EINVAL. */
int hf__duration_parse(const char *text, hf_nsec *ret_duration);
/* Writes a duration as Go prints it ("1m30s", "15s", "250ms"). A negative duration becomes "0s".
 * text has 32 bytes. */
void hf__duration_format(hf_nsec duration, char *text);

#define HF__AGE_MAX 48 /* bytes of an age as text, with the NUL */
/* Writes an age as kubectl shows it (duration.HumanDuration in k8s.io/apimachinery): "45s",
 * "5m30s", "3d", "2y45d". A negative age becomes "0s". */
void hf__age_format(int64_t seconds, char text[HF__AGE_MAX]);
