/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Configuration structs begin with `size_t size`, so that they may grow at their end: what an older caller did not know is zero,
 * its default; what a newer caller knows and this library does not must be zero, else a wish would be ignored in silence. Pure.
 */
#include <stddef.h>

/*
 * Copies what `from` says into the n bytes at `to`, size corrected. least: the size of the first version.
 * 0, or -EINVAL: size is less than that (0: forgotten), or a member this library does not know is set.
 */
int hf__config_take(void *to, size_t n, size_t least, const void *from);
