/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Configuration structs that can grow in later releases. Each begins with `size_t size`, which the
 * caller sets to the sizeof of the struct that it was compiled with; new members are only added at
 * the end.
 *
 * If the caller is older than the library, members that the caller does not know are set to 0,
 * which is their default. If the caller is newer, members that the library does not know must be 0.
 * Otherwise the library would silently ignore a setting. Pure. Thread: any.
 */
#include <stddef.h>

/* The smallest size that a caller may pass: up to and including `last`, the last required
 * member. */
#define HF__SIZED_CONFIG_MIN(type, last) (offsetof(type, last) + sizeof(((type *)0)->last))

/*
 * Copies the config at `from` into the n bytes at `to` and sets the copy's `size` to n. Returns 0,
 * or -EINVAL: the caller's `size` is less than `min_size` (perhaps the caller forgot to set it), or
 * a member that this library does not know is not 0.
 */
int hf__sized_config_copy(void *to, size_t n, size_t min_size, const void *from);
