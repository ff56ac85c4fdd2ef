/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The set of controllers of one elector, copied and checked: names are unique, every name in
 * `after` is in the set and of the same enum hf_controller_class, and there is no cycle. So an
 * order exists. Immutable once it is copied. Thread: any.
 */
#include <holdfast/leader.h>

/*
 * Copies n controllers with their names; contexts and functions stay borrowed. In the copies
 * `after` ends with NULL. label: the elector's (elector.h), for error messages. 0;
 * HF_E_INVALID: a controller has no name or no run function, or its `after` breaks a rule above or
 * has a name twice; HF_E_EXISTS (duplicate name); -EINVAL (hf__sized_copy_at refuses a struct); or
 * -ENOMEM. The caller frees with hf__controller_set_free. n 0: *ret_controllers is NULL.
 */
int hf__controller_set_copy(const struct hf_controller *from, size_t n, const char *label,
                            struct hf_controller **ret_controllers,
                            struct hf_status *reterr_status);
/* Accepts NULL, returns NULL. */
struct hf_controller *hf__controller_set_free(struct hf_controller *controllers, size_t n);
/* NULL = no controller has that name. */
const struct hf_controller *hf__controller_set_find(const struct hf_controller *controllers,
                                                    size_t n, const char *name);
