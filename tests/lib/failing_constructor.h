/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Constructors that fail at each of their steps: an allocation, a thread or a lock that cannot be
 * made. Then everything that was made is released once, and nothing that was not made. The linker
 * redirects the functions that make and destroy locks to failing_constructor.c. Thread: one.
 */

/* Makes an object and frees it. Returns the constructor's result. */
typedef int (*failing_constructor_fn)(void);

/* Calls make once, and then with each of its steps failing in turn. Asserts that no call leaves
 * memory, a lock, a thread or a descriptor, and that none fails without a failing step. */
void failing_constructor_try_all(failing_constructor_fn make);
