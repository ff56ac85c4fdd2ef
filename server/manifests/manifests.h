/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The manifests that holdfastd brings, built in from the files beside this one, in the order of
 * server/manifests/meson.build. Phase 0 is what the system itself needs; phase 1 is what users meet
 * first. The order is that of appearance: add at the end of a phase, and change a file's content
 * freely, for an upgrade applies both.
 */
#include <holdfast/bootstrap.h>

extern const struct hf_bootstrap_manifest hfd_manifests_phase_0[], hfd_manifests_phase_1[];
extern const size_t hfd_manifests_phase_0_n, hfd_manifests_phase_1_n;
