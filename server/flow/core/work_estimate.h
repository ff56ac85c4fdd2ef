/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Computes the width of a request: how many seats it takes while it runs. Pure. Thread: any.
 *
 * A list, or a watch that begins with the objects that exist, is the wider the more objects its
 * resource has, within the limits below. One that names a single object, and everything else, has
 * one seat. Kubernetes also gives a write more seats if many watch what it changes, because its
 * server copies the event for each of them; here the watches share its bytes.
 */
#include <stddef.h>

/* Objects that one seat stands for: at about 1 KB each these are Kubernetes' 100 KB. */
#define HFD_WIDTH_OBJECTS 100
/* A list is sent piece by piece, so its width has a limit; as in Kubernetes for lists from its
 * cache. */
#define HFD_WIDTH_MAX 10

/* n_objects: of the resource. limit: how many the client wants at most, 0 = all. max_width: of the
 * level, 0 = none. At least 1. */
unsigned hfd_work_width(size_t n_objects, size_t limit, unsigned max_width);
