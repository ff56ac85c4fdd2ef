/* SPDX-License-Identifier: Apache-2.0 */
/* ServiceAccounts are stored and served, but this server issues no tokens for them. */
#include "base/json.h"
#include "server/resources/parts.h"
#include "server/resources/strategies/strategies.h"

bool hfd_service_account_decode(struct hf__json *object, char *reason, size_t max_reason) {
        const struct hf__json *automount = hfd_part_get(object, "automountServiceAccountToken");

        if (automount && !hf__json_is_bool(automount))
                return hfd_part_wrong_type("ServiceAccount", "automountServiceAccountToken", "bool",
                                           reason, max_reason);
        return hfd_part_is_array(object, "secrets", true, "ServiceAccount", reason, max_reason) &&
               hfd_part_is_array(object, "imagePullSecrets", true, "ServiceAccount", reason,
                                 max_reason);
}
