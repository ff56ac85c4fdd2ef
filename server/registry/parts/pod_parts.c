/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Binding assigns a pod to a node, as a scheduler does. An Eviction deletes a pod. Budgets
 * (PodDisruptionBudgets) are data here, so they hold no eviction up.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "server/registry/parts/part.h"

/* Responds 201 with a Status, as both parts do. */
static void finish_created(struct hfd_part *part) {
        static const char status[] = "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},"
                                     "\"status\":\"Success\",\"code\":201}";
        struct hf__json *json = NULL;

        (void)hf__json_parse(status, sizeof status - 1, &json, NULL); /* NULL = no memory */
        hfd_part_finish_json(part, 201, json);
}

static void on_done(struct hfd_request *inner, const struct hfd_response *response) {
        struct hfd_part *part = (struct hfd_part *)inner;

        if (response->status.error != 0)
                hfd_part_finish(part, response);
        else
                finish_created(part);
}

/* ---- eviction ---- */

static void evict(struct hfd_part *part) {
        struct hf__json *options = hf__json_get(part->body, "deleteOptions");

        hfd_part_send(part, HFD_DELETE_OBJECT, options, on_done);
}

void hfd_eviction_serve(struct hfd_part *part) { hfd_part_admit(part, &part->body, NULL, evict); }

/* ---- binding ---- */

static void get_pod(struct hfd_part *part);

static void on_patched(struct hfd_request *inner, const struct hfd_response *response) {
        struct hfd_part *part = (struct hfd_part *)inner;

        if (hfd_part_may_retry(part, response))
                get_pod(part);
        else
                on_done(inner, response);
}

/* Responds 409: the pod has a node already, or is being deleted. */
static void refuse_binding(struct hfd_part *part, const struct hf__json *pod) {
        const char *node = hf__json_string(pod, "spec.nodeName"),
                   *name = hf__json_string(pod, "metadata.name");
        struct hfd_response response = {0};
        char why[700];

        if (hf__json_path(pod, "metadata.deletionTimestamp"))
                (void)snprintf(why, sizeof why,
                               "pod %.250s is being deleted, cannot be assigned to a host",
                               name ? name : "");
        else
                (void)snprintf(why, sizeof why, "pod %.250s is already assigned to node \"%.250s\"",
                               name ? name : "", node ? node : "");
        struct hfd_resource by_path = *part->outer->part_of;
        by_path.plural = "pods/binding"; /* as Kubernetes' message names it */
        hfd_response_conflict(&response, &by_path, part->outer->name, why);
        hfd_part_finish(part, &response);
        hfd_response_done(&response);
}

/* Sets the node, and the condition by which others see it. 0 or -ENOMEM. */
static int make_patch(const struct hfd_part *part, const struct hf__json *pod,
                      struct hf__json *patch) {
        const char *node = hf__json_string(part->body, "target.name"),
                   *revision = hf__json_string(pod, "metadata.resourceVersion");
        int r = hf__json_set_string(patch, "spec.nodeName", node ? node : "");

        return r == 0 ? hf__json_set_string(patch, "metadata.resourceVersion", revision) : r;
}

static void on_pod(struct hfd_request *inner, const struct hfd_response *response) {
        struct hfd_part *part = (struct hfd_part *)inner;
        struct hf__json *pod = NULL, *patch;
        const char *node;

        if (response->status.error != 0 || !response->body) {
                hfd_part_finish(part, response);
                return;
        }
        if (hf__json_parse(response->body->data, response->body->n, &pod, NULL) != 0) {
                hfd_part_finish_no_memory(part);
                return;
        }
        node = hf__json_string(pod, "spec.nodeName");
        if ((node && *node) || hf__json_path(pod, "metadata.deletionTimestamp")) {
                refuse_binding(part, pod);
                hf__json_free(pod);
                return;
        }
        patch = hf__json_object();
        int r = patch ? make_patch(part, pod, patch) : -ENOMEM;
        hf__json_free(pod);
        part->inner.patch = HFD_PATCH_MERGE;
        if (r == 0)
                hfd_part_send(part, HFD_PATCH, patch, on_patched);
        else
                hfd_part_finish_no_memory(part);
        hf__json_free(patch);
}

static void get_pod(struct hfd_part *part) { hfd_part_send(part, HFD_GET, NULL, on_pod); }

static void bind_pod(struct hfd_part *part) {
        const char *node = hf__json_string(part->body, "target.name");
        struct hfd_causes causes = {0};
        struct hfd_response response = {0};

        if (node && *node) {
                get_pod(part);
                return;
        }
        hfd_cause_required(&causes, "target.name", "");
        hfd_response_invalid(&response, part->outer->resource, part->outer->name, &causes);
        hfd_part_finish(part, &response);
        hfd_response_done(&response);
}

void hfd_binding_serve(struct hfd_part *part) { hfd_part_admit(part, &part->body, NULL, bind_pod); }
