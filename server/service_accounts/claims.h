/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The claims of a service account's token, as kube-apiserver has them: whose token it is, for which
 * audiences, how long it is valid, and the object that it is bound to. Pure. Thread: any.
 */
#include <stdbool.h>
#include <stdint.h>

#include <holdfast/error.h>

struct hf__json;
struct hf__strbuf;

/* All texts are borrowed. */
struct hfd_account_claims {
        const char *ns, *account, *account_uid;
        const char *secret, *secret_uid;  /* NULL = not bound to a Secret; see of_secret */
        const char *id;                   /* jti; NULL = not read, or the token has none */
        int64_t issued, expires;          /* seconds since 1970 */
        const struct hf__json *audiences; /* an array of texts */
        /* A token that a Secret holds. It is for this server, does not expire, and is valid as long
         * as the Secret has it. So audiences, issued and secret_uid are unset, and a read sets
         * expires to INT64_MAX and leaves out the id. */
        bool of_secret;
};

/* Appends the claims as JSON; id is required. issuer is not used if of_secret is set. Errors are
 * kept in out->error. */
void hfd_account_claims_put(const struct hfd_account_claims *claims, const char *issuer,
                            struct hf__strbuf *out);

/*
 * Takes the parts from the claims of a token; they are borrowed from json. issuers: those that are
 * accepted, NULL-terminated; the issuer of tokens in Secrets is always accepted. 0, or
 * HF_E_UNAUTHORIZED: the claims are of another issuer (without a message), or incomplete, or
 * contradict each other, or are bound to a pod or a node. Unless of_secret is set,
 * hfd_account_claims_check_time must follow.
 */
int hfd_account_claims_read(const struct hf__json *json, const char *const *issuers,
                            struct hfd_account_claims *ret_claims, struct hf_status *reterr_status);
/* Whether the token is valid at the time now, in seconds since 1970. 0, or HF_E_UNAUTHORIZED with a
 * message. */
int hfd_account_claims_check_time(const struct hf__json *json, int64_t now,
                                  struct hf_status *reterr_status);
