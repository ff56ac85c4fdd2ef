/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The outcome of a patch: its steps, and the reason of a refusal.
 *
 * Invariant: the steps of a patch only grow, and beyond HFD_PATCH_STEPS_MAX the patch ends. Each
 * kind of patch counts the parts of the document that it visits, because a few bytes of a patch can
 * make it visit a large document again and again.
 */
#include "server/patch/patch.h"

#include <stdarg.h>
#include <stdio.h>

#include <holdfast/error.h>

int hfd_patch_spend(struct hfd_patch_outcome *outcome, size_t steps) {
        outcome->steps += steps;
        if (outcome->steps <= HFD_PATCH_STEPS_MAX)
                return 0;
        (void)snprintf(outcome->why, sizeof outcome->why,
                       "The allowed maximum steps of a patch is %zu", HFD_PATCH_STEPS_MAX);
        return HF_E_TOO_LARGE;
}

int hfd_patch_refuse(struct hfd_patch_outcome *outcome, const char *format, ...) {
        va_list args;

        va_start(args, format);
        (void)vsnprintf(outcome->why, sizeof outcome->why, format, args);
        va_end(args);
        return HF_E_INVALID;
}

int hfd_patch_malformed(struct hfd_patch_outcome *outcome, const char *why) {
        outcome->malformed = true;
        return hfd_patch_refuse(outcome, "%s", why);
}
