/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Decides how the server maintains FlowSchemas and PriorityLevelConfigurations: its own objects,
 * and the condition Dangling. The rules are those of kube-apiserver. Pure. Thread: any. */
#include <stdbool.h>

struct hf__json;

/*
 * Updates the stored form of one of the server's own objects. wanted: the object as the server
 * makes it. mandatory: changes of users are undone. Otherwise the annotation
 * apf.kubernetes.io/autoupdate-spec decides. If it is true, a user's change of the spec is undone.
 * If it is false, not a boolean or absent, the change stays. If wanted has spec.exempt, the value
 * that a user has set there always stays. Sets the annotation to whether changes are undone.
 * *ret_changed: the object must be written. 0 or -ENOMEM.
 */
int hfd_flow_revise(struct hf__json *object, const struct hf__json *wanted, bool mandatory,
                    bool *ret_changed);
/* For an object that this server does not make: whether the annotation is true. Then an earlier
 * version of the server has made the object, and the controller deletes it. */
bool hfd_flow_is_leftover(const struct hf__json *object);
/* Sets the condition that says whether the level of a FlowSchema is missing. now: a metav1.Time.
 * *ret_changed: the schema must be written. 0; -ENOMEM; or -EINVAL: the status is malformed. */
int hfd_flow_set_dangling(struct hf__json *schema, bool level_exists, const char *now,
                          bool *ret_changed);
