/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The built-in manifests of holdfastd's bootstrap; the build embeds the files in this folder. Phase
 * 0 contains what the system itself needs, phase 1 what users find in a new cluster.
 *
 * In an empty store, the manifests of a phase are applied at the same time, so none may need
 * another one of its phase. An upgrade applies them in the order of server/manifests/meson.build.
 * A new manifest may have any place in its phase, because the ledger, the record of what was
 * applied (holdfast/bootstrap.h), knows manifests by their objects' names. The content of a
 * manifest may be changed: an upgrade applies new manifests and changed ones, unless the object is
 * not the bootstrap's, or a user has edited or deleted it (docs/semantics.md, Bootstrap). The
 * arrays end with a zeroed element, which the numbers (*_n) do not count. Immutable.
 */
#include <holdfast/bootstrap.h>

extern const struct hf_bootstrap_manifest hfd_manifests_phase_0[], hfd_manifests_phase_1[];
extern const size_t hfd_manifests_phase_0_n, hfd_manifests_phase_1_n;
/* Roles and bindings that only other programs (kubelet, scheduler ...) use. They belong to no
 * phase, so that no start waits for them: the controller cluster-roles creates and restores them.
 */
extern const struct hf_bootstrap_manifest hfd_manifests_roles[];
extern const size_t hfd_manifests_roles_n;
/* Phase 1 for a server that serves workloads (--runtime-config): also has the Service by which
 * clients in pods find the server. */
extern const struct hf_bootstrap_manifest hfd_manifests_phase_1_workloads[];
extern const size_t hfd_manifests_phase_1_workloads_n;
