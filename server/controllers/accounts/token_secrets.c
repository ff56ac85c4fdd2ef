/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fills the Secrets of the type kubernetes.io/service-account-token: each gets a token of the
 * account that it names, the CA and the namespace. A key of the queue names a Secret.
 * token_secret_core.h decides what a Secret lacks.
 *
 * Invariants. The informer has only the Secrets of this type, with an index by account, so that a
 * change of an account costs one look-up. A Secret is deleted only if it names no account, or a
 * consistent read has shown that no account has that name and uid, because the caches may be
 * outdated. A Secret is written at the resourceVersion that was read, so a token that another
 * client has added meanwhile is not replaced.
 */
#include "server/controllers/accounts/token_secrets.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "server/controllers/accounts/token_secret_core.h"
#include "server/controllers/base/account_tokens.h"
#include "server/controllers/base/object_client.h"
#include "server/controllers/context/controller_context.h"
#include "server/controllers/context/reconcile_loop.h"

#define N_WORKERS 4   /* a worker mostly waits for responses */
#define KEY_MAX   400 /* bytes of "namespace/name", with the NUL */
/* How often a Secret is checked without an event: a reload may have replaced the CA, and no event
 * reports that. */
#define RECHECK_DELAY (300 * HF_NSEC_PER_SEC)

static const struct hf_resource secrets = {"", "v1", "secrets"};
static const struct hf_resource service_accounts = {"", "v1", "serviceaccounts"};

/* ---- the account ---- */

/* Copies the account's uid. False: the Secret belongs to an account with another uid, or the
 * account has none that fits. */
static bool copy_uid(const struct hf__json *secret, const struct hf__json *account, char uid[64]) {
        const char *text = hf__json_string(account, "metadata.uid");

        if (!text || strlen(text) >= 64 || !hfd_token_secret_is_of(secret, text))
                return false;
        (void)strcpy(uid, text);
        return true;
}

/* Finds the account of the Secret, and copies its uid. HF_E_NOT_FOUND: the Secret names no account,
 * or no account has that name and uid. */
static int find_account(struct hfd_controller_context *context, struct hf_term *term,
                        const char *ns, const struct hf__json *secret, char uid[64]) {
        const char *name = hfd_token_secret_account(secret);
        struct hf__json *account;

        if (!name)
                return HF_E_NOT_FOUND;
        int r = hfd_object_client_get_cached(context->service_accounts->informer, ns, name,
                                             &account);
        bool found = r == 0 && copy_uid(secret, account, uid);
        if (r == 0)
                hf__json_free(account);
        if (found || (r != 0 && r != HF_E_NOT_FOUND))
                return r;
        r = hfd_object_client_get(term, &service_accounts, ns, name, &account);
        if (r != 0)
                return r;
        found = copy_uid(secret, account, uid);
        hf__json_free(account);
        return found ? 0 : HF_E_NOT_FOUND;
}

/* ---- the Secret ---- */

static int delete_secret(struct hf_term *term, const char *ns, const char *name,
                         const struct hf__json *secret) {
        struct hfd_object_client_delete_options options =
                {.uid = hf__json_string(secret, "metadata.uid"),
                 .resource_version = hf__json_string(secret, "metadata.resourceVersion")};

        return hfd_object_client_ignore_stale(
                hfd_object_client_delete(term, &secrets, ns, name, &options));
}

/* *ret_token stays NULL if this server has no key that signs. The Secret then gets only the rest.
 */
static int issue_token(struct hfd_controller_context *context,
                       const struct hfd_secret_token *wanted, char **ret_token) {
        int r = context->tokens.issue
                        ? context->tokens.issue(context->tokens.ctx, wanted, ret_token)
                        : HF_E_UNAVAILABLE;

        return r == HF_E_UNAVAILABLE ? 0 : r;
}

static void free_token(char *token) {
        if (token)
                explicit_bzero(token, strlen(token));
        free(token);
}

/* The usual cause: the Secret is immutable, and was created without a token or before the CA was
 * replaced. */
static void warn_refused(struct hfd_controller_context *context,
                         const struct hfd_secret_token *wanted, unsigned lacks) {
        hf_log(&context->host->log, HF_LOG_WARNING, HFD_TOKEN_SECRETS,
               "the server refuses the update of the Secret %s/%s, which lacks:%s%s%s%s",
               wanted->ns, wanted->secret, (lacks & HFD_LACKS_TOKEN) != 0 ? " token" : "",
               (lacks & HFD_LACKS_CA) != 0 ? " ca.crt" : "",
               (lacks & HFD_LACKS_NAMESPACE) != 0 ? " namespace" : "",
               (lacks & HFD_LACKS_UID) != 0 ? " uid" : "");
}

/* Writes what the Secret lacks. An update that the server refuses as invalid is logged, and is no
 * error: a change of the Secret, or the next check, tries again. */
static int fill_secret(struct hfd_controller_context *context, struct hf_term *term,
                       struct hf__json *secret, const struct hfd_secret_token *wanted,
                       const char *ca) {
        unsigned lacks = hfd_token_secret_lacks(secret, ca);
        char *token = NULL;
        int r = 0;

        if ((lacks & HFD_LACKS_TOKEN) != 0)
                r = issue_token(context, wanted, &token);
        if ((lacks & HFD_LACKS_TOKEN) != 0 && !token)
                lacks &= ~(unsigned)HFD_LACKS_TOKEN;
        if (r == 0 && lacks != 0)
                r = hfd_token_secret_fill(secret, token, ca, wanted->ns, wanted->account_uid);
        free_token(token);
        if (r != 0 || lacks == 0)
                return r;
        r = hfd_object_client_ignore_stale(
                hfd_object_client_update(term, &secrets, wanted->ns, wanted->secret, NULL, secret));
        if (r != HF_E_INVALID)
                return r;
        warn_refused(context, wanted, lacks);
        return 0;
}

static int check_secret(struct hfd_controller_context *context, struct hf_term *term,
                        const char *ns, const char *name, struct hf__json *secret) {
        char uid[64];

        if (hf__json_string(secret, "metadata.deletionTimestamp"))
                return 0;
        int r = find_account(context, term, ns, secret, uid);
        if (r == HF_E_NOT_FOUND)
                return delete_secret(term, ns, name, secret);
        if (r != 0)
                return r;
        char *ca = context->ca.root(context->ca.ctx);
        if (!ca)
                return -ENOMEM;
        const struct hfd_secret_token wanted = {.ns = ns,
                                                .account = hfd_token_secret_account(secret),
                                                .account_uid = uid,
                                                .secret = name};
        r = fill_secret(context, term, secret, &wanted, ca);
        free(ca);
        return r;
}

static int reconcile_secret(void *ctx, struct hf_term *term, const char *key, hf_nsec *ret_again) {
        struct hfd_controller_context *context = ctx;
        char ns[HF_NAME_MAX + 1], name[HF_NAME_MAX + 1];
        struct hf__json *secret;

        int r = hf_key_split(key, ns, name);
        if (r == 0)
                r = hfd_object_client_get_cached(context->token_secrets, ns, name, &secret);
        /* -EINVAL: no request can name such an object, so nothing is to be done about it. */
        if (r != 0)
                return r == HF_E_NOT_FOUND || r == -EINVAL ? 0 : r;
        r = check_secret(context, term, ns, name, secret);
        hf__json_wipe_free(secret);
        *ret_again = RECHECK_DELAY;
        return r;
}

/* ---- events ---- */

void hfd_token_secrets_index(void *ctx, const char *ns, const char *name, const char *object,
                             size_t n, struct hf_informer_values *values) {
        struct hf__json *secret;
        char value[KEY_MAX];
        int r = hf__json_parse(object, n, &secret, NULL);

        if (r == -ENOMEM)
                hf_informer_values_fail(values);
        if (r != 0)
                return;
        const char *account = hfd_token_secret_account(secret);
        if (account && hf__join(value, sizeof value, ns, "/", account, NULL) > 0)
                (void)hf_informer_values_add(values, value);
        hf__json_wipe_free(secret);
}

struct addition {
        struct hf_workqueue *queue;
        int r;
};

static void add_secret(void *ctx, const char *ns, const char *name, const char *object, size_t n) {
        struct addition *addition = ctx;
        char key[KEY_MAX];

        if (hf__join(key, sizeof key, ns, "/", name, NULL) == 0)
                return; /* no name is that long */
        if (hf_workqueue_add(addition->queue, key) == -ENOMEM)
                addition->r = -ENOMEM;
}

/* Enqueues the Secrets of an account: it may have been deleted, or created again with a new uid. */
static int map_account(void *ctx, struct hf_workqueue *queue, enum hf_event_type type,
                       const char *ns, const char *name, const char *object, size_t n) {
        struct hfd_controller_context *context = ctx;
        struct addition addition = {.queue = queue};
        char value[KEY_MAX];

        if (hf__join(value, sizeof value, ns, "/", name, NULL) == 0)
                return 0;
        /* Fails only if the index does not exist; controllers.c creates it. */
        (void)hf_informer_by_index(context->token_secrets, HFD_ACCOUNT_INDEX, value, add_secret,
                                   &addition);
        return addition.r;
}

int hfd_token_secrets_run(struct hf_term *term, void *ctx) {
        struct hfd_controller_context *context = ctx;
        const struct hfd_reconcile_loop loop = {
                .name = HFD_TOKEN_SECRETS,
                .n_workers = N_WORKERS,
                .reconcile = reconcile_secret,
                .ctx = context,
                .sources = {{context->token_secrets},
                            {hfd_needed_informer(context->service_accounts), map_account}},
        };

        return hfd_reconcile_loop_run(&loop, term);
}
