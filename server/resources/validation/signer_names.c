/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of signers: a domain, a slash, and a path that has room for a namespace and the name of an
 * object.
 *
 * Invariant: the texts of the causes and their order are those of kube-apiserver, because clients
 * show them and tests compare them.
 */
#include "server/resources/validation/signer_names.h"

#include <stdio.h>
#include <string.h>

#include "server/resources/causes.h"
#include "server/resources/validation/names.h"

#define SIGNER_MAX 571 /* bytes: a domain, a namespace, a name, and what is between them */

/* Checks the parts of the text between dots, up to the first one that is wrong. A long part is cut
 * to HFD_DNS_SUBDOMAIN_MAX + 1 bytes, which is still too long for both rules, so it stays wrong. */
static void validate_labels(const char *text, bool (*is_label)(const char *text), const char *rule,
                            const char *field, struct hfd_causes *causes) {
        char label[HFD_DNS_SUBDOMAIN_MAX + 2], why[600], quoted[300];

        for (const char *at = text;; at++) {
                size_t n = strcspn(at, ".");
                (void)snprintf(label, sizeof label, "%.*s", (int)n, at);
                if (!is_label(label)) {
                        hfd_quote(label, quoted, sizeof quoted);
                        (void)snprintf(why, sizeof why, "validating label %s: %s", quoted, rule);
                        hfd_cause_invalid_text(causes, field, text, why);
                        return;
                }
                at += n;
                if (!*at)
                        return;
        }
}

/* What does not fit in `domain` is cut: such a domain is too long anyway. */
void hfd_signer_name_validate(const char *name, const char *field, struct hfd_causes *causes) {
        const char *slash = strchr(name, '/');
        char domain[SIGNER_MAX + 1];

        if (!*name) {
                hfd_cause_required(causes, field, "");
        } else if (!slash || strchr(slash + 1, '/')) {
                hfd_cause_invalid_text(causes, field, name,
                                       "must be a fully qualified domain and path of the form "
                                       "'example.com/signer-name'");
        } else {
                if (slash - name > HFD_DNS_SUBDOMAIN_MAX)
                        hfd_cause_too_long(causes, field, "may not be more than 253 bytes");
                (void)snprintf(domain, sizeof domain, "%.*s", (int)(slash - name), name);
                validate_labels(domain, hfd_is_dns_label, hfd_dns_label_rule, field, causes);
                if (!strchr(domain, '.'))
                        hfd_cause_invalid_text(causes, field, domain,
                                               "should be a domain with at least two segments "
                                               "separated by dots");
                validate_labels(slash + 1, hfd_is_dns_subdomain, hfd_dns_subdomain_rule, field,
                                causes);
                if (strlen(name) > SIGNER_MAX)
                        hfd_cause_too_long(causes, field, "may not be more than 571 bytes");
        }
}

bool hfd_is_kubernetes_signer(const char *name) {
        static const char domain[] = "kubernetes.io";
        size_t n = strcspn(name, "/"), n_domain = sizeof domain - 1;

        return n >= n_domain && memcmp(name + n - n_domain, domain, n_domain) == 0 &&
               (n == n_domain || name[n - n_domain - 1] == '.');
}
