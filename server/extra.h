/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Additions to holdfastd's server by a program that embeds it. The test programs (tests/lib/) use
 * it; holdfastd itself adds nothing.
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
        bool unsafe_gate_off; /* as in hf_elector_config: a shut gate does not block writes */
        const char *version;  /* the version under which to bootstrap; NULL = the real one */
        const char *const *phase_0_directories; /* further manifests of phase 0; NULL-terminated */
        /* Observes the bootstrap, on the phase's thread. The phase waits until it returns. */
        void (*on_bootstrap)(enum hf_bootstrap_point point, const struct hf_bootstrap_info *info);
};
