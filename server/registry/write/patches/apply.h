/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Server-side apply of a write, and who owns the fields after other writes. Thread: that of the
 * write (write.h). Nothing blocks. */
#include "server/registry/write/write.h"

/*
 * Makes w->object the result of the apply. For an object that exists, old is that object, and
 * w->body the configuration; for a create, old is NULL, and w->object the configuration. False: the
 * response was sent, or another attempt was started; the caller must not touch w.
 */
bool hfd_write_apply(struct hfd_write *w, const struct hf__json *old);
/*
 * Sets metadata.managedFields of w->object, the new version of old, and sets w->changed. old NULL =
 * a create; otherwise the list of old may move to w->object, and old then has none. For an apply,
 * hfd_write_apply has set the managers already: then the function only puts back the old times of
 * the managers if nothing else has changed. A Binding changes no managers. An object without
 * managers gets its first ones only from a create, an apply, or a client that sends some. 0 or
 * -ENOMEM.
 */
int hfd_write_apply_track(struct hfd_write *w, struct hf__json *old);
