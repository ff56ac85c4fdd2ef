/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Assertions that a release build leaves out.
 *
 * Release builds keep assert, because a wrong state that goes on can lose data, and a comparison of
 * a member costs next to nothing (docs/benchmarks.md has the figure). The few conditions that cost
 * more on a path that every request or event takes are written with hf__assert_costly: a search of
 * a tree, a walk over a list or a text, a function that takes a lock, a check in an innermost loop.
 * Each says why it is costly unless that is plain to see.
 *
 * The top meson.build defines HF__RELEASE for the build types release, plain and minsize.
 * HF__COSTLY_ASSERTS tells code that only serves such an assertion whether it is needed. Thread:
 * any.
 */
#include <assert.h>

#if defined(NDEBUG) || defined(HF__RELEASE)
#define HF__COSTLY_ASSERTS 0
/* Not evaluated, but its variables count as used. */
#define hf__assert_costly(condition) ((void)sizeof((condition) ? 1 : 0))
#else
#define HF__COSTLY_ASSERTS           1
#define hf__assert_costly(condition) assert(condition)
#endif
