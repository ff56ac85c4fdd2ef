/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The leader-only controller cluster-roles. At the start of each term it brings holdfastd's own
 * roles and bindings up to date; then it keeps the rules of aggregated ClusterRoles equal to those
 * of the roles that they select.
 */
#include <holdfast/leader.h>

#define HFD_CLUSTER_ROLES "cluster-roles"

/* The run function of the controller; ctx is the struct hfd_controller_context. */
int hfd_role_controller_run(struct hf_term *term, void *ctx);
