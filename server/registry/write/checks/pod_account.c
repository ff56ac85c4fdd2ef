/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Assigns service accounts to new pods, as kube-apiserver's admission plug-in ServiceAccount does.
 *
 * Invariants: no pod is created with an account that the cache does not have. But an account that
 * the cache does not have yet may have been created on another instance a moment ago, so before a
 * refusal the write waits until the cache has all earlier writes. It waits longer for the account
 * "default", because a controller creates it some time after the namespace.
 */
#include "server/registry/write/checks/pod_account.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "server/cacher/cacher.h"
#include "server/cacher/sync/consistent_read.h"
#include "server/quota/usage.h"
#include "server/registry/write/reply.h"
#include "server/resources/rows/resource_table.h"
#include "server/resources/strategies/pod/rules/secret_references.h"
#include "server/resources/strategies/pod/token_volume.h"

#define DEFAULT_ACCOUNT "default"
/* How long a write waits for the account "default", and how often it looks. kube-apiserver waits
 * about as long. */
#define DEFAULT_WAIT  (1500 * HF_NSEC_PER_MSEC)
#define DEFAULT_PAUSE (50 * HF_NSEC_PER_MSEC)

static bool is_new_pod(const struct hfd_write *w) {
        const struct hfd_resource *resource = w->request->resource;

        return w->registry->assigns_accounts && w->created &&
               w->request->subresource == HFD_SUB_NONE &&
               hfd_quota_kind(resource->group, resource->plural) == HFD_QUOTA_PODS;
}

/* Does not compare the kind: only pods have the subresource ephemeralcontainers. */
static bool adds_ephemeral_containers(const struct hfd_write *w) {
        return w->registry->assigns_accounts &&
               w->request->subresource == HFD_SUB_EPHEMERAL_CONTAINERS;
}

/* Returns a new reference to the account; NULL: the cache does not have it. */
static struct hfd_object *find_in_cache(struct hfd_write *w, const char *name, bool *ret_synced) {
        const struct hfd_resource *accounts = hfd_resource_find("", "v1", "serviceaccounts");
        char path[2 * HF_NAME_MAX + 2];

        (void)snprintf(path, sizeof path, "%.253s/%.253s", w->request->ns, name);
        return hfd_cacher_newest(w->registry->cacher, accounts, path, ret_synced);
}

/* 0: the caller frees *ret_account. Otherwise there is nothing to free: -ENOMEM (*ret_account is
 * NULL); or, with *ret_account as it was, HF_E_NOT_FOUND, or HF_E_UNAVAILABLE (the cache is not
 * filled). */
static int find_account(struct hfd_write *w, const char *name, struct hf__json **ret_account) {
        bool synced;
        struct hfd_object *object =
                strlen(name) <= HF_NAME_MAX ? find_in_cache(w, name, &synced) : NULL;

        if (!object)
                return strlen(name) > HF_NAME_MAX || synced ? HF_E_NOT_FOUND : HF_E_UNAVAILABLE;
        *ret_account = hfd_object_parse(object);
        hfd_object_unref(object);
        return *ret_account ? 0 : -ENOMEM;
}

/* ---- the wait for an account ---- */

struct wait {
        struct hfd_consistent_read read; /* first member: its callbacks cast it back */
        struct hfd_write *w;
        hf_nsec until; /* boot time; for the account "default"; 0 = wait for the cache only */
};

static void end_wait(struct wait *wait) {
        struct hfd_write *w = wait->w;

        free(wait);
        w->awaiting = false;
        w->knows_account = true;
        hfd_write_attempt(w);
}

/* Ends the wait, or begins the next pause. (A pause is a wait for a revision that the cache never
 * reaches.) */
static void on_pause_end(struct hfd_consistent_read *read) {
        struct wait *wait = (struct wait *)read;
        bool synced;
        struct hfd_object *object = find_in_cache(wait->w, DEFAULT_ACCOUNT, &synced);

        if (object || !synced || hfd_registry_now(wait->w->registry) >= wait->until ||
            read->outcome != HF_E_TIMEOUT) {
                hfd_object_unref(object);
                end_wait(wait);
                return;
        }
        hf_nsec deadline = read->deadline;
        *read = (struct hfd_consistent_read){.ready = on_pause_end, .deadline = deadline};
        hfd_consistent_read_after(wait->w->registry->cacher, read, UINT64_MAX, DEFAULT_PAUSE);
}

static void on_ready(struct hfd_consistent_read *read) {
        struct wait *wait = (struct wait *)read;
        struct hfd_write *w = wait->w;
        const struct hf_status status = read->status;
        int outcome = read->outcome;

        if (outcome == 0 && wait->until == 0) {
                end_wait(wait);
        } else if (outcome == 0) {
                read->outcome = HF_E_TIMEOUT; /* as after a pause */
                on_pause_end(read);
        } else { /* nothing was written, so the client may repeat the write */
                free(wait);
                w->awaiting = false;
                hfd_write_reply_store_error(w, outcome == HF_E_TIMEOUT ? HF_E_UNAVAILABLE : outcome,
                                            &status);
        }
}

static void await_account(struct hfd_write *w, const char *name) {
        struct wait *wait = calloc(1, sizeof *wait);

        if (!wait) {
                hfd_write_reply_no_memory(w);
                return;
        }
        wait->w = w;
        if (strcmp(name, DEFAULT_ACCOUNT) == 0)
                wait->until = hfd_registry_now(w->registry) + DEFAULT_WAIT;
        wait->read.ready = on_ready;
        wait->read.deadline = w->request->deadline;
        hfd_write_await(w);
        hfd_consistent_read_start(w->registry->cacher, &wait->read);
}

/* ---- the pod ---- */

/* Responds 403. But if the write knows the pod from the cacher only, refetches it instead: the
 * store may have a pod of this name with another account or with other ephemeral containers. */
static void refuse(struct hfd_write *w, const char *why) {
        if (w->fresh) {
                hfd_write_reply_forbidden(w, why);
                return;
        }
        w->knows_account = false; /* the other account may be newer than what the cache has */
        hfd_write_refetch(w);
}

/* The account of the pod; the caller frees it. NULL: the response was sent, or another attempt was
 * started. */
static struct hf__json *account_of(struct hfd_write *w) {
        const char *name = hf__json_string(w->object, "spec.serviceAccountName");
        struct hf__json *account = NULL;
        char why[3 * HF_NAME_MAX + 100];
        int r;

        if (!name || !*name) {
                (void)snprintf(why, sizeof why,
                               "no service account specified for pod %.253s/%.253s", w->request->ns,
                               hfd_write_name(w));
                refuse(w, why);
                return NULL;
        }
        r = find_account(w, name, &account);
        if (r == HF_E_NOT_FOUND && !w->knows_account && strlen(name) <= HF_NAME_MAX) {
                await_account(w, name);
        } else if (r == HF_E_NOT_FOUND) {
                (void)snprintf(why, sizeof why,
                               "error looking up service account %.253s/%.253s: serviceaccount "
                               "\"%.253s\" not found",
                               w->request->ns, name, name);
                refuse(w, why);
        } else if (r != 0) {
                hfd_write_reply_store_error(w, r, NULL);
        }
        return account;
}

/* Whether the account allows the Secrets that the pod names. False: the response was sent, or
 * another attempt was started. */
static bool check_secrets(struct hfd_write *w, const struct hf__json *account) {
        struct hf__strbuf why = {0};
        int r = 0;

        if (hfd_account_limits_secrets(account))
                r = (w->created ? hfd_pod_check_secrets
                                : hfd_pod_check_ephemeral_secrets)(hf__json_get(w->object, "spec"),
                                                                   account, &why);
        if (r == HF_E_FORBIDDEN)
                refuse(w, why.data);
        else if (r != 0)
                hfd_write_reply_store_error(w, r, NULL);
        hf__strbuf_done(&why);
        return r == 0;
}

/* serviceAccount is the old name of serviceAccountName. Old clients read it, so both are set. */
static int set_default_name(struct hf__json *spec) {
        const char *name = hf__json_string(spec, "serviceAccountName");
        int r = 0;

        if (name && *name)
                return 0;
        r = hf__json_put_string(spec, "serviceAccountName", DEFAULT_ACCOUNT);
        return r == 0 ? hf__json_put_string(spec, "serviceAccount", DEFAULT_ACCOUNT) : r;
}

/* Copies the names of the account's pull secrets, unless the pod has some. 0 or -ENOMEM. */
static int set_pull_secrets(struct hf__json *spec, const struct hf__json *account) {
        const struct hf__json *of_account = hf__json_get(account, "imagePullSecrets");
        struct hf__json *copies;
        int r = 0;

        if (hf__json_first(hf__json_get(spec, "imagePullSecrets")) || !hf__json_first(of_account))
                return 0;
        copies = hf__json_array();
        if (!copies)
                return -ENOMEM;
        for (const struct hf__json *m = hf__json_first(of_account); m && r == 0;
             m = hf__json_next(m)) {
                const char *name = hf__json_string(m, "name");
                struct hf__json *copy = hf__json_object();
                if (name)
                        r = hf__json_put_string(copy, "name", name);
                if (r == 0)
                        r = hf__json_append(copies, copy);
                else
                        hf__json_free(copy);
        }
        if (r == 0)
                return hf__json_put(spec, "imagePullSecrets", copies);
        hf__json_free(copies);
        return r;
}

/* The member of the pod has precedence over that of the account. The default is true. */
static bool mounts_token(const struct hf__json *spec, const struct hf__json *account) {
        return hf__json_bool(spec, "automountServiceAccountToken",
                             hf__json_bool(account, "automountServiceAccountToken", true));
}

static bool check_mirror(struct hfd_write *w) {
        const char *why = hfd_mirror_pod_mistake(w->object);

        if (why)
                hfd_write_reply_forbidden(w, why);
        return !why;
}

bool hfd_write_account_assign(struct hfd_write *w) {
        struct hf__json *spec = hf__json_get(w->object, "spec"), *account;
        int r;

        if (!is_new_pod(w))
                return true;
        if (hfd_pod_is_mirror(w->object))
                return check_mirror(w);
        r = hf__json_is_object(spec) ? set_default_name(spec) : 0;
        if (r != 0) {
                hfd_write_reply_no_memory(w);
                return false;
        }
        account = account_of(w);
        if (!account)
                return false;
        if (mounts_token(spec, account))
                r = hfd_pod_mount_token(spec);
        if (r == 0)
                r = set_pull_secrets(spec, account);
        bool allowed = r == 0 && check_secrets(w, account);
        hf__json_free(account);
        if (r != 0)
                hfd_write_reply_store_error(w, r, NULL);
        return allowed;
}

bool hfd_write_account_allows(struct hfd_write *w) {
        struct hf__json *account;

        if (!is_new_pod(w) && !adds_ephemeral_containers(w))
                return true;
        if (w->created && hfd_pod_is_mirror(w->object))
                return check_mirror(w);
        account = account_of(w);
        if (!account)
                return false;
        bool allowed = check_secrets(w, account);
        hf__json_free(account);
        return allowed;
}
