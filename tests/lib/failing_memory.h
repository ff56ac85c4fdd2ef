/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Allocations and thread creations that fail when the test says so, and a count of the blocks that
 * are not freed. The linker redirects all allocations of the program to failing_memory.c (--wrap),
 * but not those of shared libraries. Thread: any.
 */
#include <stdbool.h>
#include <stddef.h>

/* From now on, allocation or thread creation number n fails, counted from 0, on whichever thread it
 * happens. Only that one fails. */
void failing_memory_arm(int n);
void failing_memory_disarm(void);
bool failing_memory_hit(void); /* whether one has failed since failing_memory_arm */

/* Between the two calls, allocations of the calling thread do not fail and are not counted by
 * failing_memory_arm. They nest. For fake_api_shield. */
void failing_memory_enter(void);
void failing_memory_leave(void);

size_t failing_memory_n_live(void); /* blocks that are allocated now */
int failing_memory_n_threads(void); /* threads that are created and not joined */

bool is_shortage(int r); /* whether r is the error of a failed allocation or thread creation */

/* Runs life(0), life(1), ... until nothing has failed in a run. life(n) calls
 * failing_memory_arm(n). Asserts that no run leaves a block, or a thread that is not joined, and
 * that there were more than at_least runs. */
void failing_memory_try_all(void (*life)(int n), int at_least);
