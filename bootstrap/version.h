/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Versions, in the order of Semantic Versioning 2.0.0 (https://semver.org): numbers by value, a
 * pre-release before its release, build metadata ignored. Pure.
 */
#include <stdbool.h>

#define HF__VERSION_MAX 63 /* bytes of a version, without the NUL */

/* Whether a text is a version: 1 to 3 numbers with dots ("1", "1.2", "1.2.3"; missing numbers are
 * 0), then "-pre.release" and "+build" as in semver, each optional. Unlike semver, it accepts
 * numbers with leading zeros. text may be NULL. */
bool hf__version_valid(const char *text);
/* < 0, 0 or > 0, as strcmp. Both must be valid. */
int hf__version_compare(const char *a, const char *b);
