/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The leader-only controller cluster-roles. At the start of each term it brings the roles and
 * bindings up to date that the server itself needs. Then it keeps the rules of aggregated
 * ClusterRoles equal to those of the roles that they select. Meanwhile it also brings the default
 * roles and bindings up to date that only other programs need, such as the kubelet.
 */
#include <holdfast/leader.h>

#define HFD_CLUSTER_ROLES "cluster-roles"

/*
 * hf_controller.run; ctx is the struct hfd_controller_context, which is borrowed. Thread: the
 * term's thread for this controller. Blocks until the term drains or aborts, or a role or binding
 * that the server itself needs cannot be brought up to date.
 */
int hfd_role_controller_run(struct hf_term *term, void *ctx);
