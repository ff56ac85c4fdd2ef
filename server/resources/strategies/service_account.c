/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The structural schema of ServiceAccount, and what a write leaves of its references to Secrets.
 * server/service_accounts/ has the tokens of accounts, which are made on request: a new account
 * gets no Secret.
 *
 * Invariants: names, types and numbers in protobuf (protobuf_tag) are those of k8s.io/api/core/v1
 * and never change. The rows of the table are sorted by name (strcmp), because look-ups bisect it.
 */
#include <string.h>

#include "base/json.h"
#include "server/resources/strategies/strategies.h"
#include "server/schema/common.h"

static const char *const by_name[] = {"name", NULL};

static const struct hfd_schema_field fields[] = {
        HFD_FIELD_API_VERSION,
        {"automountServiceAccountToken", &hfd_schema_boolean,
         "Whether pods of this account get a token by default.", .protobuf_tag = 4,
         .flags = HFD_FIELD_POINTER},
        {"imagePullSecrets", HFD_LIST_OF(&hfd_schema_local_object_reference),
         "Secrets with which pods of this account pull images.", .protobuf_tag = 3},
        HFD_FIELD_KIND,
        HFD_FIELD_METADATA,
        {"secrets",
         HFD_LIST_OF(&hfd_schema_object_reference, .list_type = HFD_LIST_MAP, .list_keys = by_name),
         "Secrets that pods of this account may use.", .merge_key = "name", .protobuf_tag = 2,
         .flags = HFD_FIELD_MERGE},
};
const struct hfd_schema hfd_service_account_schema =
        {HFD_STRUCT(HFD_CORE "ServiceAccount", fields),
         .description = "ServiceAccount is an identity for a program."};

/* Removes everything but the name from a reference to a Secret, which is in the account's namespace
 * anyway. What is no object, which only the store may have, is left alone. */
static void keep_name(struct hf__json *reference) {
        for (struct hf__json *m = hf__json_first(reference), *next; m; m = next) {
                next = hf__json_next(m);
                if (hf__json_is_object(reference) && strcmp(hf__json_key(m), "name") != 0)
                        hf__json_free(hf__json_detach(reference, m));
        }
}

int hfd_service_account_prepare(struct hf__json *object, const struct hf__json *old) {
        for (struct hf__json *m = hf__json_first(hf__json_get(object, "secrets")); m;
             m = hf__json_next(m))
                keep_name(m);
        return 0;
}
