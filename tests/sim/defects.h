/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Defects of the parts around the core: the store's fence, the process that carries out the core's
 * actions, the process's clock. The simulator models these parts itself, so a defect is an option
 * of the simulator (--defect NAME). The checks must find each of them. Mistakes in the core itself
 * are patches, see tests/mutants.
 */
#define SIM_DEFECTS(X)                                                                             \
        X(fence_off, "the store commits a leader's write whatever its term")                       \
        X(fence_identity_only, "the fence compares the writer's identity, not its term")           \
        X(fence_revision_only, "the fence compares the term's revision, not the identity")         \
        X(term_not_renewed, "the store keeps the term record when the holder changes")             \
        X(shut_gate_last, "the other actions of a step are carried out before the gate shuts")     \
        X(forget_epoch, "the elector is not told that the store's history was replaced")           \
        X(clock_without_suspend, "the clock stands still while the process is suspended")

enum sim_defect {
        SIM_DEFECT_NONE,
#define X(name, text) SIM_DEFECT_##name,
        SIM_DEFECTS(X)
#undef X
};

#define HAS_DEFECT(sim, name) ((sim)->defect == SIM_DEFECT_##name)
