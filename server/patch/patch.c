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

/* n times the logarithm of n, and at least n. */
static size_t sorting_steps(size_t n) {
        size_t steps = n;

        for (size_t rest = n; rest > 1; rest /= 2)
                steps += n;
        return steps;
}

int hfd_patch_spend(struct hfd_patch_outcome *outcome, size_t steps) {
        outcome->steps += steps;
        if (outcome->repeating > 0)
                outcome->repeats += sorting_steps(steps);
        if (outcome->steps > HFD_PATCH_STEPS_MAX)
                (void)snprintf(outcome->why, sizeof outcome->why,
                               "The allowed maximum steps of a patch is %zu", HFD_PATCH_STEPS_MAX);
        else if (outcome->repeats > HFD_PATCH_REPEATS_MAX)
                (void)snprintf(outcome->why, sizeof outcome->why,
                               "The allowed maximum steps of a patch for elements that it names "
                               "again is %zu",
                               HFD_PATCH_REPEATS_MAX);
        else
                return 0;
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
