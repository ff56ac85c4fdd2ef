/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Tells which objects the garbage collector need not look at. Pure. Thread: any. */
#include <stdbool.h>
#include <stddef.h>

/*
 * Whether an object may have owners or be marked for deletion: a quick search in its n bytes of
 * JSON. False: it certainly has no owners and is not marked. True may be wrong, because the search
 * also finds other members and values with these names.
 */
bool hfd_gc_filter_may_concern(const char *object, size_t n);
