/* SPDX-License-Identifier: Apache-2.0 */
/* There are no rules. */
#include "server/resources/custom/rules/custom_rules.h"

#include <stddef.h>

int hfd_custom_rules_new(const struct hf__json *props, const char *path, struct hfd_causes *causes,
                         struct hfd_custom_rules **ret) {
        (void)props;
        (void)path;
        (void)causes;
        *ret = NULL;
        return 0;
}
struct hfd_custom_rules *hfd_custom_rules_free(struct hfd_custom_rules *rules) {
        (void)rules;
        return NULL;
}
int hfd_custom_rules_check(const struct hfd_custom_rules *rules, const struct hf__json *object,
                           const struct hf__json *old, struct hfd_causes *causes) {
        (void)rules;
        (void)object;
        (void)old;
        (void)causes;
        return 0;
}
