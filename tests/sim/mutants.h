/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The faults the simulator proves itself on: those of the core (leader/mutant.h), and those of what
 * stands around it and is modelled here, the store's fence and the shell.
 */
#include "leader/mutant.h"

#define SIM_MUTANTS(X)                                                                             \
        X(fence_off, "commit a leader's write whatever its term")                                  \
        X(fence_identity_only, "compare the writer's identity, not its term")                      \
        X(fence_revision_only, "compare the term's revision, not the identity")                    \
        X(term_not_renewed, "keep the term record when the holder changes")                        \
        X(shut_gate_last, "carry out the other actions of a step before the gate shuts")           \
        X(forget_epoch, "do not tell the elector that the store's history was replaced")           \
        X(clock_without_suspend, "use a clock that stands still while the process is suspended")

enum sim_mutant {
        SIM_MUTANT_NONE = _HF__MUTANT_MAX,
#define X(name, text) SIM_MUTANT_##name,
        SIM_MUTANTS(X)
#undef X
};

#ifdef HF__WITH_MUTANTS
#define SIM_MUTANT(name) (hf__mutant == (int)SIM_MUTANT_##name)
#else
#define SIM_MUTANT(name) ((void)SIM_MUTANT_##name, false)
#endif
