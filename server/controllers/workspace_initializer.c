/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The workspace initializer: brings every workspace from nothing to Ready, one recorded phase after the other, so that a
 * new leader goes on where the last one stopped.
 *
 *      (none) -> Scheduling       seen and taken on
 *      Scheduling -> Initializing its namespace ws-<name> exists
 *      Initializing -> Ready      nothing more to initialise
 *
 * Each arrow is one fenced write of the workspace at the resourceVersion it was read at; a conflict means that somebody
 * else changed it, and the change brings the key back.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/reconciler.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "server/controllers/controllers.h"

static const struct hf_resource workspaces = {"tenancy.holdfast.dev", "v1alpha1", "workspaces"};
static const struct hf_resource namespaces = {"", "v1", "namespaces"};

static const char *const phases[] = {"Scheduling", "Initializing", "Ready"};

/* The phase that follows, or NULL when there is none. */
static const char *next_phase(const char *phase) {
        if (!phase || !*phase)
                return phases[0];
        for (size_t i = 0; i + 1 < sizeof phases / sizeof *phases; i++)
                if (strcmp(phase, phases[i]) == 0)
                        return phases[i + 1];
        return NULL;
}

/* Creates ws-<name>, owned by the workspace; that it exists already is as good. */
static int ensure_namespace(struct hf_term *term, const struct hf__json *workspace, const char *name) {
        struct hf__strbuf body = {0};
        struct hf_status status;

        hf__strbuf_puts(&body, "{\"kind\":\"Namespace\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":");
        char full[HF_NAME_MAX + 8];
        (void)snprintf(full, sizeof full, "ws-%s", name);
        hf__strbuf_json(&body, full, strlen(full));
        hf__strbuf_puts(&body, ",\"ownerReferences\":[{\"apiVersion\":\"tenancy.holdfast.dev/v1alpha1\",\"kind\":\"Workspace\",\"name\":");
        hf__strbuf_json(&body, name, strlen(name));
        const char *uid = hf__json_string(workspace, "metadata.uid");
        hf__strbuf_puts(&body, ",\"uid\":");
        hf__strbuf_json(&body, uid ? uid : "", uid ? strlen(uid) : 0);
        hf__strbuf_puts(&body, "}]}}");
        int r = body.error;
        if (r == 0) {
                struct hf_call call = {.verb = HF_VERB_CREATE, .resource = namespaces, .body = body.data, .n_body = body.n};
                r = hf_client_do(hf_term_client(term), &call, hf_term_abort(term), NULL, NULL, &status);
        }
        hf__strbuf_done(&body);
        return r == HF_E_EXISTS ? 0 : r;
}

static int write_phase(struct hf_term *term, struct hf__json *workspace, const char *name, const char *phase) {
        struct hf__strbuf body = {0};
        struct hf_status status;
        int r = hf__json_set_string(workspace, "status.phase", phase);

        if (r)
                return r;
        hf__json_print(workspace, &body);
        r = body.error;
        if (r == 0) {
                struct hf_call call = {.verb = HF_VERB_UPDATE, .resource = workspaces, .name = name, .body = body.data, .n_body = body.n};
                r = hf_client_do(hf_term_client(term), &call, hf_term_abort(term), NULL, NULL, &status);
        }
        hf__strbuf_done(&body);
        /* Changed or deleted meanwhile: the event that says so brings the key again. */
        return r == HF_E_CONFLICT || r == HF_E_NOT_FOUND ? 0 : r;
}

static int advance(struct hf_term *term, struct hf__json *workspace, const char *name) {
        const char *phase = hf__json_string(workspace, "status.phase");
        const char *next = next_phase(phase);

        if (!next || hf__json_string(workspace, "metadata.deletionTimestamp"))
                return 0;
        if (phase && strcmp(phase, "Scheduling") == 0) {
                int r = ensure_namespace(term, workspace, name);
                if (r)
                        return r;
        }
        return write_phase(term, workspace, name, next);
}

static int reconcile(void *ctx, struct hf_term *term, const char *key, hf_nsec *ret_again) {
        struct hfd_controllers *controllers = ctx;
        struct hf__json *workspace;
        char *text;
        size_t n;

        (void)ret_again;
        int r = hf_cache_get(controllers->workspaces, NULL, key, &text, &n);
        if (r)
                return r == HF_E_NOT_FOUND ? 0 : r;
        r = hf__json_parse(text, n, &workspace, NULL);
        free(text);
        if (r)
                return r;
        r = advance(term, workspace, key);
        hf__json_free(workspace);
        return r;
}

int hfd_run_workspace_initializer(struct hf_term *term, void *ctx) {
        struct hfd_controllers *controllers = ctx;
        const struct hf_reconciler_source source = {.cache = controllers->workspaces};
        const struct hf_reconciler reconciler = {
                .size = sizeof reconciler,
                .name = "workspace-initializer",
                .sources = &source,
                .n_sources = 1,
                .reconcile = reconcile,
                .ctx = controllers,
        };

        return hf_reconciler_run(&reconciler, term);
}
