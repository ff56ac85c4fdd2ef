/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a CustomResourceDefinition and waits until its kind is served.
 *
 * Invariant: every request and every pause between two requests ends when the token fires.
 */
#include <holdfast/definition.h>

#include <errno.h>
#include <stdlib.h>

#include <holdfast/client_port.h>
#include <holdfast/upsert.h>

#include "base/cleanup.h"
#include "base/json.h"

#define PAUSE_MIN (20 * HF_NSEC_PER_MSEC)
#define PAUSE_MAX (1 * HF_NSEC_PER_SEC)

static const struct hf_resource definitions = {"apiextensions.k8s.io", "v1",
                                               "customresourcedefinitions"};

struct wait {
        struct hf_client *client;
        struct hf_cancel *token;
        const char *name;
        struct hf_resource kind;
        struct hf_status *reterr_status;
};

/* Finds the kind that the definition defines, in its storage version. False: the object is not a
 * definition, or does not serve that version. */
static bool read_kind(const struct hf__json *definition, struct hf_resource *ret_kind) {
        const struct hf__json *m = hf__json_first(hf__json_path(definition, "spec.versions"));

        while (m && !hf__json_bool(m, "storage", false))
                m = hf__json_next(m);
        *ret_kind = (struct hf_resource){hf__json_string(definition, "spec.group"),
                                         hf__json_string(m, "name"),
                                         hf__json_string(definition, "spec.names.plural")};
        return ret_kind->group && ret_kind->version && ret_kind->plural &&
               hf__json_bool(m, "served", false);
}

static const struct hf__json *condition_of(const struct hf__json *definition, const char *type) {
        const struct hf__json *m = hf__json_first(hf__json_path(definition, "status.conditions"));

        while (m && !hf__json_has_text(m, "type", type))
                m = hf__json_next(m);
        return m;
}

/* 0: the server has established the definition. HF_E_NOT_FOUND: not yet. HF_E_CONFLICT: it will
 * not, as long as another definition has the names. */
static int check_established(const struct wait *wait, const struct hf__json *definition) {
        const struct hf__json *accepted = condition_of(definition, "NamesAccepted");

        if (hf__json_has_text(condition_of(definition, "Established"), "status", "True"))
                return 0;
        if (hf__json_has_text(accepted, "status", "False")) {
                const char *message = hf__json_string(accepted, "message");
                return hf_fail(wait->reterr_status, HF_E_CONFLICT, "%s: %s", wait->name,
                               message ? message : "its names are not accepted");
        }
        return HF_E_NOT_FOUND;
}

/* 0: the server serves the kind. HF_E_NOT_FOUND: not yet. Other errors end the wait. */
static int check_definition(const struct wait *wait) {
        const struct hf_request read = {.size = sizeof read,
                                        .verb = HF_VERB_GET,
                                        .resource = definitions,
                                        .name = wait->name};
        const struct hf_request list = {.size = sizeof list,
                                        .verb = HF_VERB_LIST,
                                        .resource = wait->kind,
                                        .query = "limit=1"};
        struct hf__json *definition = NULL;
        char *text = NULL;
        size_t n = 0;

        int r = hf_client_do(wait->client, &read, wait->token, &text, &n, wait->reterr_status);
        if (r == HF_E_NOT_FOUND) /* no list will succeed, so waiting is useless */
                return hf_fail(wait->reterr_status, HF_E_CONFLICT,
                               "%s: it was deleted before it was served", wait->name);
        if (r != 0)
                return r;
        r = hf__json_parse(text, n, &definition, NULL);
        if (r != 0)
                (void)hf_fail(wait->reterr_status, r, "%s: the response is not JSON: %s",
                              wait->name, hf_strerror(r));
        if (r == 0)
                r = check_established(wait, definition);
        hf__json_free(definition);
        free(text);
        if (r == 0)
                r = hf_client_do(wait->client, &list, wait->token, NULL, NULL, wait->reterr_status);
        return r;
}

static int wait_served(const struct wait *wait) {
        const struct hf_clock *clock = hf_host_clock(wait->client->host);
        hf_nsec pause = PAUSE_MIN;
        int r;

        while ((r = check_definition(wait)) == HF_E_NOT_FOUND) {
                if (hf_cancel_wait(wait->token, hf_now(clock) + pause) == HF_E_CANCELED)
                        return hf_fail(wait->reterr_status, HF_E_CANCELED,
                                       "%s: canceled before it was served", wait->name);
                pause = pause * 2 < PAUSE_MAX ? pause * 2 : PAUSE_MAX;
        }
        return r;
}

int hf_definition_establish(struct hf_client *client, const char *definition, size_t n,
                            struct hf_cancel *token, struct hf_status *reterr_status) {
        struct wait wait = {.client = client, .token = token, .reterr_status = reterr_status};
        HF__CLEANUP(hf__json_cleanup) struct hf__json *json = NULL;

        if (!client || !definition || !token)
                return hf_fail(reterr_status, -EINVAL, "a definition needs a client and a token");
        int r = hf__json_parse(definition, n, &json, NULL);
        wait.name = hf__json_string(json, "metadata.name");
        if (r != 0)
                return hf_fail(reterr_status, r, "the definition is not JSON: %s", hf_strerror(r));
        if (!wait.name || !read_kind(json, &wait.kind))
                return hf_fail(reterr_status, HF_E_INVALID,
                               "this is not a CustomResourceDefinition that serves its storage "
                               "version");
        const struct hf_request request = {.size = sizeof request,
                                           .resource = definitions,
                                           .name = wait.name,
                                           .body = definition,
                                           .n_body = n};
        r = hf_upsert(client, &request, token, NULL, NULL, reterr_status);
        return r != 0 ? r : wait_served(&wait);
}
