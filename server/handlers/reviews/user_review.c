/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SelfSubjectReviews, which say who the requester is, and TokenReviews, which say whose a token is.
 *
 * A TokenReview names the user of any token, so only users with the right to create one get a
 * result.
 *
 * Invariant: a token that is not valid is no failure of the request; the response is a 201 that
 * says so. A client would take a failure for a fault of the server, and try again. A token that an
 * authenticator cannot decide about yet (HF_E_UNAVAILABLE) gets such a 201, too.
 */
#include "server/handlers/reviews/user_review.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

#define AUDIENCES_MAX 256 /* in a TokenReview */

/* Adds the extra values: pairs of a key and a value, each with a NUL. Several may have the same
 * key. */
static int add_extra(struct hf__json *info, const struct hfd_requester *user) {
        int r = 0;

        for (const char *at = user->extra; r == 0 && at < user->extra + user->n_extra;) {
                const char *key = at, *value = at + strlen(at) + 1;
                struct hf__json *extra = hf__json_get(info, "extra");
                at = value + strlen(value) + 1;
                if (!extra) {
                        r = hf__json_put(info, "extra", hf__json_object());
                        extra = hf__json_get(info, "extra");
                }
                if (r == 0 && !hf__json_get(extra, key))
                        r = hf__json_put(extra, key, hf__json_array());
                if (r == 0)
                        r = hf__json_append_string(hf__json_get(extra, key), value);
        }
        return r;
}

/* Sets the member at path, for example "status.user", to a UserInfo of the user. 0 or -ENOMEM. */
static int set_user(struct hf__json *object, const char *path, const struct hfd_requester *user) {
        struct hf__json *info = hf__json_object();
        int r = info ? hf__json_put_string(info, "username", user->subject.name) : -ENOMEM;

        if (r == 0 && user->uid[0])
                r = hf__json_put_string(info, "uid", user->uid);
        if (r == 0 && user->subject.n_groups > 0)
                r = hf__json_put(info, "groups", hf__json_array());
        for (size_t i = 0; r == 0 && i < user->subject.n_groups; i++)
                r = hf__json_append_string(hf__json_get(info, "groups"), user->subject.groups[i]);
        if (r == 0)
                r = add_extra(info, user);
        if (r == 0)
                return hf__json_set(object, path, info);
        hf__json_free(info);
        return r;
}

bool hfd_self_review(const struct hfd_review_context *context, struct hf__json *object,
                     struct hfd_response *response) {
        hf__json_drop(object, "spec");
        int r = set_user(object, "status.userInfo", context->requester);
        if (r != 0)
                hfd_response_no_memory(response);
        return r == 0;
}

/* As in Kubernetes, the user is present but empty, and authenticated is absent, which counts as
 * false. why: what the authenticator of the token says; "" = nothing. */
static int set_failure(struct hf__json *object, const char *why) {
        char text[sizeof((struct hf_status *)NULL)->message + 32];
        int r = hf__json_set(object, "status.user", hf__json_object());

        (void)snprintf(text, sizeof text, "[invalid bearer token%s%s]", *why ? ", " : "", why);
        return r == 0 ? hf__json_set_string(object, "status.error", text) : r;
}

/* The token must be for one of the audiences in the spec or, if the spec has none, for one of this
 * server's. The status says for which of them it is. 0, or -errno: memory has run out. */
static int set_token_status(const struct hfd_review_context *context, struct hf__json *object,
                            const char *token) {
        const struct hf__json *wanted = hf__json_path(object, "spec.audiences");
        struct hf__json *audiences = NULL;
        struct hf_status why = {0};
        struct hfd_user user = {0};
        const struct hfd_token_use use = {.audiences = hf__json_first(wanted) ? wanted : NULL,
                                          .ret_audiences = &audiences,
                                          .reterr_status = &why};

        int r = hfd_auth_authenticate_token(context->auth, token, &use, &user);
        if (r != 0) {
                hf__json_free(audiences); /* set if the token is good, but its user does not fit */
                return r < 0 ? r : set_failure(object, why.message);
        }
        struct hfd_requester *requester = hfd_requester_new(&user);
        r = requester ? hf__json_set_bool(object, "status.authenticated", true) : -ENOMEM;
        if (r == 0)
                r = set_user(object, "status.user", requester);
        free(requester);
        if (r == 0 && audiences)
                return hf__json_set(object, "status.audiences", audiences);
        hf__json_free(audiences);
        return r;
}

/* Limits the audiences, because each one is compared with each audience of the token. */
static bool check_audiences(const struct hfd_review_context *context,
                            const struct hf__json *audiences, struct hfd_response *response) {
        struct hfd_causes causes;

        if (hf__json_count(audiences) <= AUDIENCES_MAX)
                return true;
        hfd_causes_init(&causes);
        hfd_cause_too_long(&causes, "spec.audiences", "must have at most 256 items");
        hfd_response_invalid(response, context->resource, "", &causes);
        return false;
}

bool hfd_token_review(const struct hfd_review_context *context, struct hf__json *object,
                      struct hfd_response *response) {
        const char *token = hf__json_text(hf__json_path(object, "spec.token"));

        if (!token || !*token) {
                hfd_response_bad_request(response,
                                         "token is required for TokenReview in authentication");
                return false;
        }
        if (!check_audiences(context, hf__json_path(object, "spec.audiences"), response))
                return false;
        int r = set_token_status(context, object, token);
        if (r != 0)
                hfd_response_no_memory(response);
        return r == 0;
}
