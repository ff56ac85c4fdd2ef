/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of spec.resourceClaims: the claims of a pod for devices. Containers refer to an element
 * by its name. Each element names a ResourceClaim, or the template from which a ResourceClaim is
 * made for the pod.
 *
 * Invariants: the texts of the causes and their order are those of kube-apiserver, because clients
 * show them and tests compare them. Repeated names are found in an index, because a client chooses
 * how many claims there are.
 */
#include "base/json.h"
#include "base/json_index.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"

static const struct hfd_internal_member of_claim[] = {{"Name", "name", .is_text = true},
                                                      {"ResourceClaimName", "resourceClaimName"},
                                                      {"ResourceClaimTemplateName",
                                                       "resourceClaimTemplateName"},
                                                      {0}};

static void validate_claim(const struct hf__json *claim, const char *field,
                           const struct hf__json_index *names, size_t position,
                           struct hfd_causes *causes) {
        static const char *const sources[] = {"resourceClaimName", "resourceClaimTemplateName"};
        const char *name = hfd_text_of(claim, "name");
        char path[HFD_FIELD_PATH_MAX];
        size_t n = 0;

        hfd_field_path(path, field, "name");
        if (*name && hfd_is_repeated(names, name, position))
                hfd_cause_duplicate_text(causes, path, name);
        else
                hfd_label_name_validate(claim, field, "name", causes);
        for (size_t i = 0; i < 2; i++)
                n += hf__json_get(claim, sources[i]) ? 1 : 0;
        if (n == 2)
                hfd_internal_refuse(claim, of_claim, field,
                                    "at most one of `resourceClaimName` or "
                                    "`resourceClaimTemplateName` may be specified",
                                    causes);
        if (n == 0)
                hfd_internal_refuse(claim, of_claim, field,
                                    "must specify one of: `resourceClaimName`, "
                                    "`resourceClaimTemplateName`",
                                    causes);
        for (size_t i = 0; i < 2; i++)
                if (hf__json_get(claim, sources[i]))
                        hfd_subdomain_validate(hfd_text_of(claim, sources[i]),
                                               hfd_field_path(path, field, sources[i]), causes);
}

void hfd_device_claims_validate(const struct hf__json *list, const char *field,
                                struct hfd_causes *causes) {
        struct hf__json_index names;
        char path[HFD_FIELD_PATH_MAX];
        size_t i = 0;

        if (hfd_causes_check(causes, hf__json_index_init(&names, list, "name")))
                for (const struct hf__json *m = hf__json_first(list); m; m = hf__json_next(m), i++)
                        validate_claim(m, hfd_field_index(path, field, i), &names, i, causes);
        hf__json_index_done(&names);
}
