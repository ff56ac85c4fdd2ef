/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The dependencies between hooks. */
#include <holdfast/error.h>

struct hf_hooks;

/*
 * Finds the hooks that each `after` names, and checks that no hooks wait for each other in a
 * circle. 0, -ENOMEM, HF_E_INVALID with a message that names the hook or the circle. Thread: the
 * one that starts the hooks, once, after registration was closed.
 */
int hf__hook_dependencies_resolve(struct hf_hooks *hooks, struct hf_status *reterr_status);
