/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks the claims of ID tokens of OpenID Connect, whose signature was verified before, and makes
 * the user. The messages are those of kube-apiserver, where it has one.
 *
 * Invariants: a claim that is looked at and has the wrong type makes the token invalid. So does a
 * missing one, apart from nbf, email_verified and the groups. As in Go's JSON decoder, null passes
 * for nbf, for the groups or one of them, and for an element of aud. Names are never cut. The name
 * of a claim may contain dots, so it is never used as a path.
 */
#include "server/oidc/id_token.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/time_format.h"

/* As in Kubernetes, `nbf` may be this far in the future, because the issuer's clock may be ahead;
 * `exp` has no leeway. */
#define LEEWAY_S 300

#define REFUSE(...) hf_fail(reterr_status, HF_E_UNAUTHORIZED, __VA_ARGS__)

/* The text of a claim; NULL: it is missing, or not a string. */
static const char *claim_text(const struct hf__json *claims, const char *name) {
        const struct hf__json *claim = hf__json_get(claims, name);

        return hf__json_is_string(claim) ? hf__json_text(claim) : NULL;
}

static bool has_audience(const struct hf__json *claims, const char *client_id) {
        const struct hf__json *audience = hf__json_get(claims, "aud");

        if (hf__json_is_string(audience))
                return strcmp(hf__json_text(audience), client_id) == 0;
        /* As in Go's decoder, null in the list is an empty text. */
        for (const struct hf__json *m = hf__json_first(audience); m; m = hf__json_next(m))
                if (!hf__json_is_string(m) && !hf__json_is_null(m))
                        return false;
        return hf__json_is_array(audience) && hf__json_has_element(audience, client_id);
}

/* A time in seconds, perhaps with a fraction, which is dropped. False: it is no number, or no
 * int64_t can hold it. (A double with a fraction is below 2^53.) */
static bool claim_time(const struct hf__json *claims, const char *name, int64_t *ret_time) {
        const struct hf__json *claim = hf__json_get(claims, name);

        if (hf__json_integer(claim, ret_time))
                return true;
        double value = hf__json_is_number(claim) ? hf__json_number(claim) : NAN;
        if (!(fabs(value) < 0x1p53))
                return false;
        *ret_time = (int64_t)value;
        return true;
}

static int check_time(const struct hf__json *claims, int64_t now, struct hf_status *reterr_status) {
        int64_t expires, not_before;
        char text[HF__MICROTIME_MAX];

        if (!claim_time(claims, "exp", &expires))
                return REFUSE("oidc: verify token: oidc: the token has no expiry");
        hf__time_format(expires, text);
        if (now >= expires)
                return REFUSE("oidc: verify token: oidc: token is expired (Token Expiry: %s)",
                              text);
        /* As in Go's decoder, a null nbf is a missing one. */
        const struct hf__json *claim = hf__json_get(claims, "nbf");
        if (!claim || hf__json_is_null(claim))
                return 0;
        if (!claim_time(claims, "nbf", &not_before) || now + LEEWAY_S < not_before)
                return REFUSE("oidc: verify token: oidc: current time before the nbf (not before) "
                              "time");
        return 0;
}

/* The rules have required claims as "NAME=VALUE"; the check of the flags has seen the "=". */
static int check_required(const struct hfd_id_token_rules *rules, const struct hf__json *claims,
                          struct hf_status *reterr_status) {
        char name[256];

        for (const char *const *at = rules->required; *at; at++) {
                size_t n = strcspn(*at, "=");
                if (n >= sizeof name)
                        return REFUSE("oidc: a required claim has a long name");
                memcpy(name, *at, n);
                name[n] = '\0';
                const char *wanted = *at + n + 1, *found = claim_text(claims, name);
                if (!hf__json_get(claims, name))
                        return REFUSE("oidc: required claim %s not present in ID token", name);
                if (!found)
                        return REFUSE("oidc: parse claim %s: it is not a string", name);
                if (strcmp(found, wanted) != 0)
                        return REFUSE("oidc: required claim %s value does not match. Got = %.60s, "
                                      "want = %.60s",
                                      name, found, wanted);
        }
        return 0;
}

/* Sets the name. If no prefix is configured, a name other than an email gets "ISSUER#", so that no
 * issuer can name a user of another authenticator. "-" configures that there is no prefix. */
static int set_name(const struct hfd_id_token_rules *rules, const struct hf__json *claims,
                    struct hfd_user *user, struct hf_status *reterr_status) {
        const char *claim = rules->username_claim, *text = claim_text(claims, claim),
                   *prefix = rules->username_prefix, *mark = "";
        const struct hf__json *verified = hf__json_get(claims, "email_verified");
        bool is_email = strcmp(claim, "email") == 0;
        char name[sizeof user->name];

        if (!text || !*text)
                return REFUSE("oidc: parse username claims \"%.60s\": %s", claim,
                              hf__json_get(claims, claim) ? "it is not a string"
                                                          : "claim not present");
        if (is_email && verified && !hf__json_is_true(verified))
                return REFUSE("oidc: email not verified");
        if (strcmp(prefix, "-") == 0) {
                prefix = "";
        } else if (!*prefix && !is_email) {
                prefix = rules->issuer;
                mark = "#";
        }
        int n = snprintf(name, sizeof name, "%s%s%s", prefix, mark, text);
        if (n < 0 || (size_t)n >= sizeof name || !hfd_user_set_name(user, name))
                return REFUSE("oidc: the name of the user is too long");
        return 0;
}

/* False: the group does not fit. As in Kubernetes, it may be empty: no binding names such a group.
 */
static bool add_group(const struct hfd_id_token_rules *rules, const struct hf__json *claim,
                      struct hfd_user *user) {
        const char *text = hf__json_text(claim); /* NULL: it is null */
        char group[sizeof user->groups[0]];
        int n = snprintf(group, sizeof group, "%s%s", rules->groups_prefix, text ? text : "");

        return n >= 0 && (size_t)n < sizeof group && hfd_user_add_group(user, group);
}

/* Reads the groups: a string, or a list of strings. As in Go's decoder, null is an empty list, and
 * within a list an empty string. */
static int set_groups(const struct hfd_id_token_rules *rules, const struct hf__json *claims,
                      struct hfd_user *user, struct hf_status *reterr_status) {
        const char *name = rules->groups_claim;
        const struct hf__json *claim = *name ? hf__json_get(claims, name) : NULL;
        bool fits = true;

        user->n_groups = 0;
        if (!claim || hf__json_is_null(claim))
                return 0;
        if (hf__json_is_string(claim)) {
                fits = add_group(rules, claim, user);
        } else if (!hf__json_is_array(claim)) {
                return REFUSE("oidc: parse groups claim \"%.60s\": it is neither a string nor a "
                              "list",
                              name);
        } else {
                for (const struct hf__json *m = hf__json_first(claim); m && fits;
                     m = hf__json_next(m)) {
                        if (!hf__json_is_string(m) && !hf__json_is_null(m))
                                return REFUSE("oidc: parse groups claim \"%.60s\": a group is not "
                                              "a string",
                                              name);
                        fits = add_group(rules, m, user);
                }
        }
        /* One place is left for the group system:authenticated. */
        if (!fits || user->n_groups >= HFD_MAX_GROUPS)
                return REFUSE("oidc: the user has more than %d groups, or one whose name is too "
                              "long",
                              HFD_MAX_GROUPS - 1);
        return 0;
}

int hfd_id_token_accept(const struct hfd_id_token_rules *rules, const struct hf__json *claims,
                        int64_t now, struct hfd_user *ret_user, struct hf_status *reterr_status) {
        assert(rules->issuer && rules->client_id && rules->username_claim && claims);
        const char *issuer = claim_text(claims, "iss");

        if (!issuer || strcmp(issuer, rules->issuer) != 0)
                return HF_E_UNAUTHORIZED; /* another authenticator may accept it */
        if (!has_audience(claims, rules->client_id))
                return REFUSE("oidc: verify token: oidc: expected audience in [\"%.100s\"]",
                              rules->client_id);
        int r = check_time(claims, now, reterr_status);
        if (r == 0)
                r = set_name(rules, claims, ret_user, reterr_status);
        if (r == 0)
                r = set_groups(rules, claims, ret_user, reterr_status);
        if (r == 0)
                r = check_required(rules, claims, reterr_status);
        return r;
}
