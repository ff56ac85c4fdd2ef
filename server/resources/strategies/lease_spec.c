/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Validates the strategy of a coordinated election, which both kinds of coordination.k8s.io have.
 *
 * Invariant: a strategy without a slash is one that Kubernetes defines. Others have a domain, so
 * that they never clash with one that Kubernetes adds later.
 */
#include "server/resources/strategies/lease_spec.h"

#include <assert.h>
#include <string.h>

#include "server/resources/causes.h"
#include "server/resources/validation/names.h"

void hfd_lease_spec_validate_strategy(const char *strategy, struct hfd_causes *causes) {
        const char *slash = strchr(strategy, '/');

        assert(*strategy);
        if (strcmp(strategy, HFD_OLDEST_EMULATION_VERSION) == 0 ||
            (slash && hfd_is_qualified_name(strategy)))
                return;
        /* The field paths below repeat "strategy", as those of Kubernetes do. */
        if (!slash)
                hfd_cause_unsupported_text(causes, "spec.strategy.strategy", strategy,
                                           "\"" HFD_OLDEST_EMULATION_VERSION "\"");
        else
                hfd_cause_invalid_text(causes, "spec.strategy.strategy", strategy,
                                       "must be of the form domain/name");
}
