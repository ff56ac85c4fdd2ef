/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A write of a PriorityClass: whether it may be the default; and the look-ups of classes, and the
 * wait for them, of all checks. Thread: that of the write (write.h). Nothing blocks. */
#include "server/registry/write/write.h"

struct hf__json;

/*
 * Checks w->object, which is valid. old NULL = a create. As in Kubernetes, two writes at the same
 * time may both succeed. False: the response was sent, or another attempt was started.
 */
bool hfd_write_may_be_default(struct hfd_write *w, const struct hf__json *old);
/*
 * Finds the default among the PriorityClasses that the cache has; classes is their row. If there
 * are several, the one with the lowest value counts. 0, or -ENOMEM. name "": there is none, or the
 * cache is not filled.
 */
int hfd_write_default_class(struct hfd_write *w, const struct hfd_resource *classes,
                            char name[HF_NAME_MAX + 1]);
/*
 * Finds a class (of priority, runtime or storage) by its name in the cache; classes is the row of
 * its kind. 0: the caller frees *ret_class. Otherwise it is NULL: HF_E_NOT_FOUND; HF_E_UNAVAILABLE
 * (the cache is not filled); or -ENOMEM.
 */
int hfd_write_find_class(struct hfd_write *w, const struct hfd_resource *classes, const char *name,
                         struct hf__json **ret_class);
/*
 * Waits until the cache has every write that was acknowledged before, and sets w->knows_classes.
 * Another attempt follows, perhaps before this returns. If the cache stays behind, the response is
 * 503; with may_be_late the attempt follows all the same, and sees the classes that the cache has.
 */
void hfd_write_await_classes(struct hfd_write *w, bool may_be_late);
