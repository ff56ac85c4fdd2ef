/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Configuration structs begin with `size_t size`, so that they may grow at their end: what an older
 * caller did not know is zero, its default; what a newer caller knows and this library does not
 * must be zero, else a wish would be ignored in silence. Pure.
 */
#include <stddef.h>

/* The least a config of this type says: its members up to `last`, the last one without a default.
 */
#define HF__SIZED_CONFIG_LEAST(type, last) (offsetof(type, last) + sizeof(((type *)0)->last))

/*
 * Copies what `from` says into the n bytes at `to`, size corrected. 0, or -EINVAL: size is less
 * than `least` (forgotten, perhaps), or a member this library does not know is set.
 */
int hf__sized_config_take(void *to, size_t n, size_t least, const void *from);
