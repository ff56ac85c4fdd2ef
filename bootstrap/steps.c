/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of the steps of a phase.
 *
 * Invariants: it never has more than HF_BOOTSTRAP_STEPS_MAX steps, because the ledger has a record
 * of each in one ConfigMap. No two steps have the same id once hf__steps_check_unique has
 * succeeded: the ledger tells steps apart by their ids.
 */
#include "bootstrap/steps.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int hf__steps_append(struct hf__steps *steps, struct hf__step *step) {
        if (steps->n == HF_BOOTSTRAP_STEPS_MAX)
                return HF_E_TOO_LARGE;
        struct hf__step *list = realloc(steps->list, (steps->n + 1) * sizeof *list);
        if (!list)
                return -ENOMEM;
        steps->list = list;
        list[steps->n++] = *step;
        *step = (struct hf__step){0}; /* consumed */
        return 0;
}

/* Returns the step with that id among the first `end` steps; NULL = there is none. */
static const struct hf__step *find_step(const struct hf__steps *steps, size_t end, const char *id) {
        for (size_t i = 0; i < end; i++)
                if (strcmp(steps->list[i].id, id) == 0)
                        return &steps->list[i];
        return NULL;
}

int hf__steps_check_unique(const struct hf__steps *earlier, const struct hf__steps *steps,
                           struct hf_status *reterr_status) {
        for (size_t i = 0; i < steps->n; i++) {
                const struct hf__step *step = &steps->list[i];
                const struct hf__step *first = find_step(earlier, earlier->n, step->id);
                if (!first)
                        first = find_step(steps, i, step->id);
                if (first)
                        return hf_fail(reterr_status, HF_E_INVALID,
                                       "%.180s: field metadata.name: %.100s is already in %.160s",
                                       step->source, step->id, first->source);
        }
        return 0;
}

void hf__step_done(struct hf__step *step) {
        free(step->id);
        free(step->ns);
        free(step->name);
        free(step->content);
        free(step->source);
        *step = (struct hf__step){0};
}

void hf__steps_done(struct hf__steps *steps) {
        for (size_t i = 0; i < steps->n; i++)
                hf__step_done(&steps->list[i]);
        free(steps->list);
        *steps = (struct hf__steps){0};
}
