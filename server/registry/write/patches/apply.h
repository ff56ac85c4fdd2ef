/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Server-side apply of a write, and who owns the fields after other writes. Thread: that of the
 * write (write.h); computes only. */
#include "server/registry/write/write.h"

/*
 * Makes w->object the result of the apply. For an object that exists, old is that object, and
 * w->body the configuration; for a create, old is NULL, and w->object the configuration. False: the
 * response was sent, or another attempt was started; the caller must not touch w.
 */
bool hfd_write_apply(struct hfd_write *w, const struct hf__json *old);
/*
 * Sets in w->object, the new version of old, who owns its fields. old NULL = a create; an existing
 * old may lose its managers to w->object. hfd_write_apply has done this for an apply: then this
 * only keeps the times of the managers if nothing else has changed. Sets w->changed. 0 or -ENOMEM.
 */
int hfd_write_apply_track(struct hfd_write *w, struct hf__json *old);
