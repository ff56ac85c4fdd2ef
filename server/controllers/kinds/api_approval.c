/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The approval of an API by the Kubernetes community. Reasons and messages are those of
 * kube-apiserver, which clients read.
 *
 * Invariant: a protected group counts as approved only by an annotation that is a URL. Without one,
 * the reason says why the group is not approved.
 */
#include "server/controllers/kinds/api_approval.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

/* Whether the group is the domain, or one below it. */
static bool is_below(const char *group, const char *domain) {
        size_t n = strlen(group), n_domain = strlen(domain);

        return n >= n_domain && strcmp(group + n - n_domain, domain) == 0 &&
               (n == n_domain || group[n - n_domain - 1] == '.');
}

/* Whether the text is an absolute URL with a host. */
static bool is_url(const char *text) {
        size_t n_scheme = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                       "0123456789+-.");
        bool letter = (text[0] >= 'a' && text[0] <= 'z') || (text[0] >= 'A' && text[0] <= 'Z');

        if (!letter || strncmp(text + n_scheme, "://", 3) != 0)
                return false;
        const char *host = text + n_scheme + 3;
        size_t n_host = strcspn(host, "/?");
        if (n_host == 0 || strcspn(host, " \"<>\\^`{|}#") < n_host)
                return false;
        for (const char *at = text; *at; at++)
                if ((unsigned char)*at < ' ' || *at == 0x7f)
                        return false;
        return true;
}

int hfd_api_approval(const char *group, const char *annotation, struct hfd_api_approval *approval) {
        static const char requirement[] = "protected groups must have approval annotation "
                                          "\"" HFD_API_APPROVED "\"",
                          reference[] =
                                  ", see https://github.com/kubernetes/enhancements/pull/1111";
        struct hf__strbuf *message = &approval->message;

        if (!group || (!is_below(group, "k8s.io") && !is_below(group, "kubernetes.io")))
                return 0;
        approval->status = "False";
        if (!annotation || !*annotation) {
                approval->reason = "MissingAnnotation";
                hf__strbuf_printf(message, "%s%s", requirement, reference);
        } else if (strncmp(annotation, "unapproved", strlen("unapproved")) == 0) {
                approval->reason = "UnapprovedAnnotation";
                hf__strbuf_puts(message, "not approved: ");
                hf__strbuf_json(message, annotation, strlen(annotation));
        } else if (is_url(annotation)) {
                approval->status = "True";
                approval->reason = "ApprovedAnnotation";
                hf__strbuf_printf(message, "approved in %s", annotation);
        } else {
                approval->reason = "InvalidAnnotation";
                hf__strbuf_printf(message,
                                  "%s with either a URL or a reason starting with \"unapproved\"%s",
                                  requirement, reference);
        }
        return message->error != 0 ? -ENOMEM : 0;
}
