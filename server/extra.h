/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A program that embeds holdfastd's server can add these parts to it. The test programs
 * (tests/lib/) add controllers and manifests; holdfastd itself adds nothing.
 *
 * Everything is borrowed and must not change while the server runs.
 */
#include <stdbool.h>
#include <stddef.h>

#include <holdfast/bootstrap.h>
#include <holdfast/leader.h>

#define HFD_EXTRA_CONTROLLERS_MAX 16

/* All members are optional: zero adds nothing. */
struct hfd_extra {
        /* Controllers in addition to those of holdfastd; at most HFD_EXTRA_CONTROLLERS_MAX. */
        const struct hf_controller *controllers;
        size_t n_controllers;
        const char *version; /* hf_bootstrap_config.version; NULL = HFD_VERSION */
        const char *const *phase_0_directories; /* additional manifests of phase 0 */
        size_t n_phase_0_directories;
        /* Observes the bootstrap. The phase waits until it returns. Calls for different phases can
         * overlap. Thread: as for hf_bootstrap_config.on_progress. */
        void (*on_bootstrap)(enum hf_bootstrap_point point, const struct hf_bootstrap_info *info);
};
