/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the paths of fields. Invariant: the written text ends with a NUL, whatever the length of
 * the names, which clients choose. */
#include "server/resources/strategies/admission/rule_path.h"

#include "base/strbuf.h"

const char *hfd_rule_path(char out[HFD_RULE_PATH_MAX], const char *field, const char *name) {
        (void)hf__join(out, HFD_RULE_PATH_MAX, field, ".", name, NULL);
        return out;
}

const char *hfd_rule_path_at(char out[HFD_RULE_PATH_MAX], const char *field, const char *name,
                             size_t i) {
        char number[HF__U64_TEXT_MAX];

        (void)hf__u64_text(i, number);
        (void)hf__join(out, HFD_RULE_PATH_MAX, field, name ? "." : "", name ? name : "", "[",
                       number, "]", NULL);
        return out;
}
