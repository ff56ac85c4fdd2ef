/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The set of controllers of one elector: copied, with names that are unique and an order that
 * exists. */
#include <holdfast/leader.h>

/* Owned by the caller, freed with hf__controller_set_free. label: "namespace/name" of the Lease,
 * for the error. */
int hf__controller_set_copy(const struct hf_controller *from, size_t n, const char *label,
                            struct hf_controller **ret_controllers,
                            struct hf_status *reterr_status);
struct hf_controller *hf__controller_set_free(struct hf_controller *controllers,
                                              size_t n); /* accepts NULL, returns NULL */
const struct hf_controller *hf__controller_set_find(const struct hf_controller *controllers,
                                                    size_t n, const char *name); /* NULL = none */
