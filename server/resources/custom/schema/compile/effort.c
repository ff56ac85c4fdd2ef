/* SPDX-License-Identifier: Apache-2.0 */
/* The limits of what a definition takes. Invariant: the texts name the limits of effort.h. */
#include "server/resources/custom/schema/compile/effort.h"

/* Nothing overflows: `times` is the number of versions, which is less than the bytes of the
 * definition, and the caller multiplies only what is within the limits. */
void hfd_schema_effort_multiply(struct hfd_schema_effort *effort, size_t times) {
        effort->n_bytes *= times;
        effort->work *= times;
}

const char *hfd_schema_effort_problem(const struct hfd_schema_effort *effort) {
        if (effort->n_bytes > HFD_SCHEMA_PROGRAMS_MAX)
                return "the compiled patterns of the definition take more than 8 MiB in all";
        if (effort->work > HFD_SCHEMA_WORK_MAX)
                return "the patterns and rules of the definition take more than 10,000,000 steps "
                       "of work to compile in all";
        return NULL;
}
