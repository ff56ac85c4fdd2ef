/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of windowsOptions, which a pod and each of its containers may have: the user in the
 * form "USER" or "DOMAIN\USER", the credentials of a group account (GMSA), and whether the
 * processes run in the host itself.
 *
 * Invariant: the texts of the causes and their order are those of kube-apiserver, because clients
 * show them and tests compare them.
 */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"

#define CREDENTIALS_MAX (64 * 1024) /* bytes */
#define DOMAIN_MAX      255         /* bytes */
#define USER_MAX        104         /* bytes */
#define NETBIOS_MAX     15          /* characters */
#define DNS_LABEL_MAX   63          /* bytes */

/* ---- the user ---- */

static bool has_control(const char *text) {
        for (const unsigned char *c = (const unsigned char *)text; *c; c++)
                if (*c < ' ' || *c == 0x7f)
                        return true;
        return false;
}

/* Whether the first n bytes are a NetBIOS domain name: up to 15 characters, none of which has a
 * meaning in paths or patterns, and no dot at the beginning. */
static bool is_netbios(const char *domain, size_t n) {
        size_t n_characters = 0;

        for (size_t i = 0; i < n; i++) {
                if (strchr("\\/:*?\"<>|", domain[i]))
                        return false;
                n_characters += (domain[i] & 0xc0) != 0x80; /* first byte of a character */
        }
        return n > 0 && domain[0] != '.' && n_characters <= NETBIOS_MAX;
}

/* Whether the first n bytes are a name in DNS. Unlike elsewhere, it may have capitals. */
static bool is_dns_domain(const char *domain, size_t n) {
        static const char inner[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                    "0123456789-";

        for (size_t i = 0;; i++) {
                size_t length = strspn(domain + i, inner);
                if (length == 0 || length > DNS_LABEL_MAX || domain[i] == '-' ||
                    domain[i + length - 1] == '-')
                        return false;
                i += length;
                if (i >= n)
                        return true;
                if (domain[i] != '.')
                        return false;
        }
}

/* user: what follows the domain. name: both, which the causes show. */
static void validate_account(const char *user, const char *name, const char *field,
                             struct hfd_causes *causes) {
        size_t n = strlen(user);

        if (n == 0)
                hfd_cause_invalid_text(causes, field, name, "runAsUserName's User cannot be empty");
        else if (n > USER_MAX)
                hfd_cause_invalid_text(causes, field, name,
                                       "runAsUserName's User length must not be longer than 104 "
                                       "characters");
        if (n > 0 && strspn(user, ". ") == n)
                hfd_cause_invalid_text(causes, field, name,
                                       "runAsUserName's User cannot contain only periods or "
                                       "spaces");
        if (strpbrk(user, "\"/\\:;|=,+*?<>@[]"))
                hfd_cause_invalid_text(causes, field, name,
                                       "runAsUserName's User cannot contain the following "
                                       "characters: \"/\\:;|=,+*?<>@[]");
}

static void validate_user(const char *name, const char *field, struct hfd_causes *causes) {
        const char *backslash = strchr(name, '\\');
        size_t n = backslash ? (size_t)(backslash - name) : 0;

        if (!*name) {
                hfd_cause_invalid_text(causes, field, name,
                                       "runAsUserName cannot be an empty string");
        } else if (has_control(name)) {
                hfd_cause_invalid_text(causes, field, name,
                                       "runAsUserName cannot contain control characters");
        } else if (backslash && strchr(backslash + 1, '\\')) {
                hfd_cause_invalid_text(causes, field, name,
                                       "runAsUserName cannot contain more than one backslash");
        } else {
                if (n > DOMAIN_MAX)
                        hfd_cause_invalid_text(causes, field, name,
                                               "runAsUserName's Domain length must be under 256 "
                                               "characters");
                if (backslash && !is_netbios(name, n) && !is_dns_domain(name, n))
                        hfd_cause_invalid_text(causes, field, name,
                                               "runAsUserName's Domain doesn't match the NetBios "
                                               "nor the DNS format");
                validate_account(backslash ? backslash + 1 : name, name, field, causes);
        }
}

/* ---- all members ---- */

void hfd_windows_options_validate(const struct hf__json *context, const char *field,
                                  struct hfd_causes *causes) {
        const struct hf__json *options = hf__json_get(context, "windowsOptions"),
                              *credentials = hf__json_get(options, "gmsaCredentialSpec");
        const char *text = hf__json_text_or_empty(credentials);
        char of[HFD_FIELD_PATH_MAX], path[HFD_FIELD_PATH_MAX];

        hfd_field_path(of, field, "windowsOptions");
        if (hf__json_get(options, "gmsaCredentialSpecName"))
                hfd_subdomain_validate(hfd_text_of(options, "gmsaCredentialSpecName"),
                                       hfd_field_path(path, of, "gmsaCredentialSpecName"), causes);
        hfd_field_path(path, of, "gmsaCredentialSpec");
        if (credentials && !*text)
                hfd_cause_invalid_text(causes, path, text,
                                       "gmsaCredentialSpec cannot be an empty string");
        else if (strlen(text) > CREDENTIALS_MAX)
                hfd_cause_invalid_text(causes, path, text,
                                       "gmsaCredentialSpec size must be under 64 KiB");
        if (hf__json_get(options, "runAsUserName"))
                validate_user(hfd_text_of(options, "runAsUserName"),
                              hfd_field_path(path, of, "runAsUserName"), causes);
}

/* ---- processes of the host ---- */

struct host_processes {
        const struct hf__json *of_pod; /* the pod's own value; NULL: it has none */
        size_t n_containers, n_of_host;
        struct hfd_causes *causes;
};

static void visit(const struct hf__json *container, const char *field, void *userdata) {
        struct host_processes *seen = userdata;
        const struct hf__json *own =
                hf__json_path(container, "securityContext.windowsOptions.hostProcess");
        bool of_pod = hf__json_is_true(seen->of_pod),
             of_host = own ? hf__json_is_true(own) : of_pod;
        char path[HFD_FIELD_PATH_MAX];

        if (own && seen->of_pod && of_host != of_pod)
                hfd_cause_invalid(seen->causes,
                                  hfd_field_path(path, field,
                                                 "securityContext.windowsOptions.hostProcess"),
                                  of_host ? "true" : "false",
                                  of_pod ? "pod hostProcess value must be identical if both are "
                                           "specified, was true"
                                         : "pod hostProcess value must be identical if both are "
                                           "specified, was false");
        seen->n_containers++;
        seen->n_of_host += of_host;
}

void hfd_host_processes_validate(const struct hf__json *spec, const char *field,
                                 struct hfd_causes *causes) {
        struct host_processes seen =
                {.of_pod = hf__json_path(spec, "securityContext.windowsOptions.hostProcess"),
                 .causes = causes};
        char path[HFD_FIELD_PATH_MAX];

        hfd_containers_visit(spec, field, visit, &seen);
        if (seen.n_of_host == 0)
                return;
        if (seen.n_of_host != seen.n_containers)
                hfd_cause_invalid_text(causes, field, "",
                                       "If pod contains any hostProcess containers then all "
                                       "containers must be HostProcess containers");
        if (!hf__json_bool(spec, "hostNetwork", false))
                hfd_cause_invalid(causes, hfd_field_path(path, field, "hostNetwork"), "false",
                                  "hostNetwork must be true if pod contains any hostProcess "
                                  "containers");
}
