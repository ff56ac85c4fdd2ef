/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Creates a ServiceAccount `default` in every namespace, for programs that name no other account. A
 * key of the queue is the name of a namespace.
 *
 * Invariants. The controller only checks that the account exists; its fields belong to the users.
 * If nothing is missing, a key costs two look-ups in caches, however many namespaces there are.
 */
#include "server/controllers/namespaces/default_account.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "server/controllers/base/object_client.h"
#include "server/controllers/context/controller_context.h"
#include "server/controllers/context/reconcile_loop.h"
#include "server/controllers/namespaces/active_namespace.h"

#define ACCOUNT   "default"
#define N_WORKERS 8 /* a worker mostly waits for responses */

static const struct hf_resource service_accounts = {"", "v1", "serviceaccounts"};

static int create_account(struct hf_term *term, const char *ns) {
        struct hf__json *account = hf__json_object();
        int r = account ? 0 : -ENOMEM;

        if (r == 0)
                r = hf__json_set_string(account, "apiVersion", "v1");
        if (r == 0)
                r = hf__json_set_string(account, "kind", "ServiceAccount");
        if (r == 0)
                r = hf__json_set_string(account, "metadata.name", ACCOUNT);
        if (r == 0)
                r = hfd_active_namespace_created(term, ns,
                                                 hfd_object_client_create(term, &service_accounts,
                                                                          ns, account));
        hf__json_free(account);
        return r;
}

static int reconcile_namespace(void *ctx, struct hf_term *term, const char *key,
                               hf_nsec *ret_again) {
        struct hfd_controller_context *context = ctx;
        bool active;
        char *text;
        int r = hfd_active_namespace(context, key, &active);

        if (r != 0 || !active)
                return r;
        r = hf_informer_get(context->service_accounts->informer, key, ACCOUNT, &text, NULL);
        if (r == 0)
                free(text);
        return r == HF_E_NOT_FOUND ? create_account(term, key) : r;
}

/* Only deletes of accounts matter: a new namespace causes an event of its own. */
static int map_account(void *ctx, struct hf_workqueue *queue, enum hf_event_type type,
                       const char *ns, const char *name, const char *object, size_t n) {
        if (type != HF_EVENT_DELETED || strcmp(name, ACCOUNT) != 0)
                return 0;
        return hf_workqueue_add(queue, ns);
}

int hfd_default_account_run(struct hf_term *term, void *ctx) {
        struct hfd_controller_context *context = ctx;
        assert(context->namespaces); /* controllers.c has created it */
        const struct hfd_reconcile_loop loop = {
                .name = HFD_DEFAULT_ACCOUNT,
                .n_workers = N_WORKERS,
                .reconcile = reconcile_namespace,
                .ctx = context,
                .sources = {{hfd_needed_informer(context->namespaces)},
                            {hfd_needed_informer(context->service_accounts), map_account}},
        };

        return hfd_reconcile_loop_run(&loop, term);
}
