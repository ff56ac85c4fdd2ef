/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kube-apiserver has a ComponentStatus for each etcd server, the scheduler and the controller
 * manager. This server has one, etcd-0, for any kind of store: it shows the result of the health
 * check `etcd`.
 *
 * Invariant: the texts below are JSON, except for the reason of the check, which is escaped.
 */
#include "server/handlers/reviews/component_status.h"

#include <stdio.h>
#include <string.h>

#include <holdfast/health.h>

#include "base/strbuf.h"
#include "server/registry/list/list.h"
#include "server/registry/list/table.h"
#include "server/registry/registry.h"
#include "server/resources/objects/object.h"
#include "server/resources/selection/selector.h"

#define NAME  "etcd-0"
#define TYPED "\"kind\":\"ComponentStatus\",\"apiVersion\":\"v1\","

struct check {
        bool healthy;
        char reason[200];
};

/* hf_health_each calls this for every check under a read lock (health.h), so this only copies. */
static void on_check(void *ctx, const char *name, bool healthy, const char *reason) {
        struct check *check = ctx;

        if (strcmp(name, "etcd") != 0)
                return;
        check->healthy = healthy;
        (void)snprintf(check->reason, sizeof check->reason, "%s", healthy ? "ok" : reason);
}

/* Appends all members but kind and apiVersion, and then the closing brace. */
static void put_members(struct hf__strbuf *s, const struct check *check) {
        hf__strbuf_printf(s,
                          "\"metadata\":{\"name\":\"" NAME "\"},\"conditions\":[{\"type\":"
                          "\"Healthy\",\"status\":\"%s\",\"message\":",
                          check->healthy ? "True" : "False");
        hf__strbuf_json(s, check->reason, strlen(check->reason));
        hf__strbuf_puts(s, "}]}");
}

/* The body of a response in JSON. selected: false for a list whose selectors do not match the only
 * object, so that the list is empty. NULL = out of memory. */
static struct hf__buf *make_json(const struct check *check, bool is_list, bool selected) {
        struct hf__strbuf s = {0};

        if (is_list)
                hf__strbuf_puts(&s, "{\"kind\":\"ComponentStatusList\",\"apiVersion\":\"v1\","
                                    "\"metadata\":{},\"items\":[");
        if (selected)
                hf__strbuf_puts(&s, is_list ? "{" : "{" TYPED);
        if (selected)
                put_members(&s, check);
        hf__strbuf_puts(&s, is_list ? "]}" : "");
        struct hf__buf *buf = hf__strbuf_to_buf(&s);
        hf__strbuf_done(&s);
        return buf;
}

/* Responds in the format of the request: JSON from check, or a Table or PartialObjectMetadata from
 * object, which is the ComponentStatus that check describes. */
static void respond_with_status(struct hfd_registry *registry, const struct hfd_request *request,
                                const struct check *check, struct hfd_object *object,
                                struct hfd_response *response) {
        bool is_list = request->verb == HFD_LIST, selected = true;
        struct hf__buf *body;
        int r = 0;

        if (is_list)
                r = hfd_selector_matches(&request->options.labels, object, &selected);
        if (r == 0 && is_list && selected)
                r = hfd_selector_matches(&request->options.fields, object, &selected);
        if (r != 0)
                body = NULL;
        else if (request->format == HFD_AS_TABLE)
                body = hfd_table_render(registry, request, &object, selected, "");
        else if (request->format == HFD_AS_PARTIAL && is_list)
                body = hfd_list_render(registry, request, &object, selected, "");
        else if (request->format == HFD_AS_PARTIAL)
                body = hfd_table_render_partial(object);
        else
                body = make_json(check, is_list, selected);
        hfd_response_ok(response, 200, body);
}

void hfd_component_status(struct hfd_registry *registry, const struct hfd_request *request,
                          struct hfd_response *response) {
        struct check check = {.reason = "there is no check"};
        struct hfd_object *object = NULL;

        if (request->verb == HFD_GET && strcmp(request->name, NAME) != 0) {
                hfd_response_not_found(response, request->resource, request->name);
                return;
        }
        (void)hf_health_each(registry->host->health, HF_HEALTHZ, on_check, &check);
        struct hf__buf *json = make_json(&check, false, true);
        if (json)
                object = hfd_object_new(request->resource, NAME, 0, json);
        hf__buf_unref(json);
        if (object)
                respond_with_status(registry, request, &check, object, response);
        else
                hfd_response_no_memory(response);
        hfd_object_unref(object);
}
