/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The set of controllers of one elector, copied and checked: names are unique, every name in
 * `after` is in the set and of the same class, and there is no cycle. So an order exists. Immutable
 * once it is copied. Thread: any.
 */
#include <holdfast/leader.h>

/*
 * Copies n controllers with their names; contexts and functions stay borrowed. label:
 * "namespace/name" of the Lease, for error messages. HF_E_INVALID, HF_E_EXISTS (duplicate name),
 * -EINVAL (a size is wrong) or -ENOMEM. The caller frees with hf__controller_set_free.
 */
int hf__controller_set_copy(const struct hf_controller *from, size_t n, const char *label,
                            struct hf_controller **ret_controllers,
                            struct hf_status *reterr_status);
/* Accepts NULL, returns NULL. */
struct hf_controller *hf__controller_set_free(struct hf_controller *controllers, size_t n);
/* NULL = no controller has that name. */
const struct hf_controller *hf__controller_set_find(const struct hf_controller *controllers,
                                                    size_t n, const char *name);
