/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Whether the PriorityClass of a write may be the default. Also, for all checks that need a class:
 * functions that find classes in the cache, or wait for them. Thread: that of the write (write.h).
 * Nothing blocks. */
#include "server/registry/write/write.h"

struct hf__json;

/*
 * Checks w->object, which is valid. old NULL = a create. As in Kubernetes, two writes at the same
 * time may both succeed. False: the response was sent, or another attempt was started.
 */
bool hfd_write_may_be_default(struct hfd_write *w, const struct hf__json *old);
/*
 * Finds the default among the PriorityClasses that the cache has; classes is the resource
 * priorityclasses. If there are several, the one with the lowest value counts. 0, or -ENOMEM. name
 * "": there is none, or the cache is not filled.
 */
int hfd_write_default_class(struct hfd_write *w, const struct hfd_resource *classes,
                            char name[HF_NAME_MAX + 1]);
/*
 * Finds a class (of priority, runtime or storage) by its name in the cache; classes is the
 * resource of its kind. 0: the caller frees *ret_class. Otherwise it is NULL: HF_E_NOT_FOUND;
 * HF_E_UNAVAILABLE (the cache is not filled); or -ENOMEM.
 */
int hfd_write_find_class(struct hfd_write *w, const struct hfd_resource *classes, const char *name,
                         struct hf__json **ret_class);
/*
 * Begins to wait until the cache has every write that was acknowledged before. At the end, perhaps
 * before the function returns, w->knows_classes is set and another attempt follows, or an error is
 * the response; the caller must not touch w. If the cache stays behind, the error is 503. With
 * may_be_late the attempt follows all the same, and sees the classes that the cache has, unless the
 * cache was never filled.
 */
void hfd_write_await_classes(struct hfd_write *w, bool may_be_late);
