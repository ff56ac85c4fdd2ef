/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Resolves and checks the dependencies between hooks. */
#include <holdfast/error.h>

struct hf_hooks;

/*
 * Finds the hooks that each `after` names, and checks that the dependencies contain no cycle. 0,
 * -ENOMEM, or HF_E_INVALID with a message that names the cycle, or a hook that is after an unknown
 * one. Called once, by the thread that starts the hooks, after registration was closed.
 */
int hf__hook_dependencies_resolve(struct hf_hooks *hooks, struct hf_status *reterr_status);
