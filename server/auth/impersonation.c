/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the headers of an impersonation: the user as whom the sender wants to make the request.
 *
 * Invariants:
 *
 *  - Each value of a header is one group or one extra value, whatever characters it contains. An
 *    authenticating proxy may have the right to impersonate every group, and passes on names that
 *    others have chosen. A comma in such a name must not make two groups of it.
 *  - A value that does not fit is refused, never cut.
 *
 * server/filters/impersonation.c checks that the sender may impersonate the user.
 */
#include "server/auth/impersonation.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <holdfast/error.h>

#include "base/percent.h"
#include "server/auth/impersonation_rights.h"

#define EXTRA_PREFIX "impersonate-extra-"

/* Copies the next value of a header to value, and moves *at to the one after it; NULL = there is
 * none. False: the value is too long. */
static bool next_value(const char **at, char *value, size_t max) {
        const char *end = strstr(*at, HFD_HTTP_VALUE_SEPARATOR);
        size_t n = end ? (size_t)(end - *at) : strlen(*at);

        if (n >= max)
                return false;
        memcpy(value, *at, n);
        value[n] = '\0';
        *at = end ? end + strlen(HFD_HTTP_VALUE_SEPARATOR) : NULL;
        return true;
}

/* Copies the first value of a header that names one thing. As in Kubernetes, further ones do not
 * count. header NULL: "". False: it is too long. */
static bool first_value(const char *header, char *value, size_t max) {
        const char *at = header ? header : "";

        return next_value(&at, value, max);
}

/* header: NULL = there is none. As in Kubernetes, a group may be empty here; only the mode
 * HFD_IMPERSONATE_LEGACY can allow it. False: there are too many groups, or one is too long. */
static bool add_groups(struct hfd_user *user, const char *header) {
        char group[sizeof user->groups[0]];

        for (const char *at = header; at;) {
                if (!next_value(&at, group, sizeof group))
                        return false;
                if (!hfd_user_in_group(user, group) && !hfd_user_add_group(user, group))
                        return false;
        }
        return true;
}

/* The key is percent-encoded, because the names of headers have few characters. As in Kubernetes,
 * one that cannot be decoded is taken as it is. False: the key is empty, or something does not fit.
 */
static bool add_extra(struct hfd_user *user, const char *encoded, const char *header) {
        char key[256], value[HFD_USER_EXTRA];
        size_t n_encoded = strlen(encoded);

        if (n_encoded == 0 || n_encoded >= sizeof key)
                return false;
        if (hf__percent_decode(encoded, n_encoded, false, key, sizeof key) < 0)
                memcpy(key, encoded, n_encoded + 1);
        for (const char *at = header; at;)
                if (!next_value(&at, value, sizeof value) || !hfd_user_add_extra(user, key, value))
                        return false;
        return true;
}

/* As in Kubernetes: a ServiceAccount gets the groups of ServiceAccounts unless the request names
 * groups, and every user gets system:authenticated or system:unauthenticated. A user for whom the
 * request names system:unauthenticated is not made authenticated. False: a group does not fit. */
static bool add_implied_groups(struct hfd_user *user, bool has_groups) {
        char ns[HFD_NAMESPACE_MAX], group[sizeof user->groups[0]];
        const char *name, *implied = HFD_GROUP_UNAUTHENTICATED;

        if (!has_groups && hfd_is_service_account(user->name, ns, &name)) {
                (void)snprintf(group, sizeof group, "system:serviceaccounts:%s", ns);
                if (!hfd_user_add_group(user, "system:serviceaccounts") ||
                    !hfd_user_add_group(user, group))
                        return false;
        }
        if (hfd_user_in_group(user, HFD_GROUP_UNAUTHENTICATED))
                return true;
        if (strcmp(user->name, HFD_USER_ANONYMOUS) != 0)
                implied = HFD_GROUP_AUTHENTICATED;
        return hfd_user_in_group(user, implied) || hfd_user_add_group(user, implied);
}

int hfd_impersonation_parse(struct hfd_http_request *request, struct hfd_user *ret_user,
                            bool *ret_asked, size_t *ret_n_groups, const char **ret_fault) {
        char name[sizeof ret_user->name];
        const char *key;

        /* Nearly every request has none of the headers. */
        *ret_asked = hfd_http_request_header_like(request, "impersonate-", 0, &key) != NULL;
        if (!*ret_asked)
                return 0;
        const char *user = hfd_http_request_header(request, "impersonate-user");
        const char *groups = hfd_http_request_header(request, "impersonate-group");
        const char *uid = hfd_http_request_header(request, "impersonate-uid");
        const char *value = hfd_http_request_header_like(request, EXTRA_PREFIX, 0, &key);

        /* As in Kubernetes, an empty name or uid is as good as none, even if others follow it. */
        *ret_user = (struct hfd_user){0};
        bool fits = first_value(user, name, sizeof name) &&
                    first_value(uid, ret_user->uid, sizeof ret_user->uid);
        *ret_asked = !fits || name[0] || ret_user->uid[0] || groups || value;
        if (!*ret_asked)
                return 0;
        *ret_fault = "the headers of the impersonation name no user, too many groups or extra "
                     "values, or a name that is too long";
        if (!fits || !name[0] || !hfd_user_set_name(ret_user, name) ||
            !add_groups(ret_user, groups))
                return HF_E_INVALID;
        *ret_n_groups = ret_user->n_groups;
        for (size_t i = 0; value;
             value = hfd_http_request_header_like(request, EXTRA_PREFIX, ++i, &key))
                if (!add_extra(ret_user, key + strlen(EXTRA_PREFIX), value))
                        return HF_E_INVALID;
        return add_implied_groups(ret_user, *ret_n_groups > 0) ? 0 : HF_E_INVALID;
}
