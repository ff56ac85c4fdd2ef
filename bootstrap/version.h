/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Versions in the order of semver 2.0.0: numbers by value, a pre-release before its release, build
 * metadata ignored. Pure. */
#include <stdbool.h>

#define HF__VERSION_MAX 63

/* 1 to 3 numbers with dots ("1", "1.2", "1.2.3"), then "-pre.release" and "+build" as semver has
 * them; missing numbers are 0. */
bool hf__version_valid(const char *text);
/* < 0, 0 or > 0. Both must be valid. */
int hf__version_compare(const char *a, const char *b);
