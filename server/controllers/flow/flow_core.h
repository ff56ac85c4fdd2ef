/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Decides how the server maintains FlowSchemas and PriorityLevelConfigurations: its own objects,
 * and the condition Dangling. The rules are those of kube-apiserver. Pure. Thread: any. */
#include <stdbool.h>

struct hf__json;

/*
 * Brings a stored object that the server has made up to date. wanted: the object as the server
 * makes it. mandatory: changes of users are undone. Otherwise a user's change stays if the
 * annotation apf.kubernetes.io/autoupdate-spec is false, or if it is absent and the spec was
 * changed. What a user has set in spec.exempt always stays. 0 or -ENOMEM.
 */
int hfd_flow_revise(struct hf__json *object, const struct hf__json *wanted, bool mandatory,
                    bool *ret_changed);
/* Whether an object that this server does not make has the annotation of the server's own objects.
 * An earlier version has made it, so it is deleted. */
bool hfd_flow_is_leftover(const struct hf__json *object);
/* Sets the condition that says whether the level of a FlowSchema is missing. now: a metav1.Time. 0
 * or -ENOMEM. */
int hfd_flow_set_dangling(struct hf__json *schema, bool level_exists, const char *now,
                          bool *ret_changed);
