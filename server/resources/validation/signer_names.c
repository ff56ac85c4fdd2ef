/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of signers: a domain, a slash, and a path that has room for a namespace and the name of an
 * object.
 *
 * Invariant: the texts of the causes and their order are those of kube-apiserver, because clients
 * show them and tests compare them.
 */
#include "server/resources/validation/signer_names.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "server/resources/causes.h"
#include "server/resources/validation/names.h"

#define SIGNER_MAX 571 /* bytes: a domain, a namespace, a name, and what is between them */

struct label_rules {
        size_t max; /* bytes */
        const char *length, *form;
};

/* shown: what the label is a part of. */
static void refuse_label(const char *shown, const char *label, size_t n, const char *rule,
                         const char *field, struct hfd_causes *causes) {
        char part[HFD_DNS_SUBDOMAIN_MAX + 2], why[600], quoted[300];

        (void)snprintf(part, sizeof part, "%.*s", (int)(n < sizeof part ? n : sizeof part), label);
        hfd_quote(part, quoted, sizeof quoted);
        (void)snprintf(why, sizeof why, "validating label %s: %s", quoted, rule);
        hfd_cause_invalid_text(causes, field, shown, why);
}

/* Checks the parts between dots of the text, which a slash may end, up to the first one that is
 * wrong. It may be too long and have a wrong form. shown: the text in the causes. */
static void validate_labels(const char *text, const char *shown, const struct label_rules *rules,
                            const char *field, struct hfd_causes *causes) {
        for (const char *at = text;; at++) {
                size_t n = strcspn(at, "./");
                bool is_formed = hfd_has_subdomain_form(at, n);
                if (n > rules->max)
                        refuse_label(shown, at, n, rules->length, field, causes);
                if (!is_formed)
                        refuse_label(shown, at, n, rules->form, field, causes);
                at += n;
                if (n > rules->max || !is_formed || *at != '.')
                        return;
        }
}

/* What does not fit in `domain` is cut in the causes. */
void hfd_signer_name_validate(const char *name, const char *field, struct hfd_causes *causes) {
        const struct label_rules of_domain = {HFD_DNS_LABEL_MAX, hfd_dns_label_length_rule,
                                              hfd_dns_label_rule},
                                 of_path = {HFD_DNS_SUBDOMAIN_MAX, hfd_dns_subdomain_length_rule,
                                            hfd_dns_subdomain_rule};
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
                validate_labels(name, domain, &of_domain, field, causes);
                if (!memchr(name, '.', (size_t)(slash - name)))
                        hfd_cause_invalid_text(causes, field, domain,
                                               "should be a domain with at least two segments "
                                               "separated by dots");
                validate_labels(slash + 1, slash + 1, &of_path, field, causes);
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
