/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Binding assigns a pod to a node, and its labels and annotations are copied to the pod.
 * Schedulers send Bindings: no other update may set the node (workloads/pods/pod_part_rules.c). An
 * Eviction deletes a pod. The server stores PodDisruptionBudgets, but they have no effect on
 * evictions.
 *
 * Invariant: a binding writes the version of the pod that it has checked, so two schedulers never
 * assign one pod twice.
 */
#include <string.h>

#include "base/json.h"
#include "base/json_index.h"
#include "base/strbuf.h"
#include "base/time_format.h"
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

static void evict_pod(struct hfd_part *part) {
        struct hf__json *options = hf__json_get(part->body, "deleteOptions");

        hfd_part_send(part, HFD_DELETE_OBJECT, options, on_done);
}

void hfd_eviction_serve(struct hfd_part *part) {
        hfd_part_admit(part, &part->body, NULL, evict_pod);
}

/* ---- binding ---- */

static void get_pod(struct hfd_part *part);

static void on_bound(struct hfd_request *inner, const struct hfd_response *response) {
        struct hfd_part *part = (struct hfd_part *)inner;

        if (hfd_part_may_retry(part, response))
                get_pod(part);
        else
                on_done(inner, response);
}

/* Responds 409: the pod cannot be assigned to a node. plural: the resource in the message. */
static void refuse_binding(struct hfd_part *part, const char *plural, const char *why) {
        struct hfd_resource by_path = *part->outer->part_of;
        struct hfd_response response = {0};

        by_path.plural = plural;
        hfd_response_conflict(&response, &by_path, part->outer->name, why);
        hfd_part_finish(part, &response);
        hfd_response_done(&response);
}

/* Checks a precondition: if the Binding's metadata have this member, the pod must have the same
 * value. False: why is filled, or has an error. */
static bool is_met(const struct hfd_part *part, const struct hf__json *pod, const char *path,
                   const char *name, struct hf__strbuf *why) {
        const char *wanted = hf__json_string(part->body, path), *found = hf__json_string(pod, path);

        if (!wanted || !*wanted || (found && strcmp(wanted, found) == 0))
                return true;
        hf__strbuf_printf(why,
                          "StorageError: invalid object, Code: 4, Key: /registry/pods/%s/%s, "
                          "ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: %s in "
                          "precondition: %.100s, %s in object meta: %s",
                          part->outer->ns, part->outer->name, name, wanted, name,
                          found ? found : "");
        return false;
}

/* Whether the pod may be assigned to a node. False: why is filled, or has an error. */
static bool may_bind(const struct hfd_part *part, const struct hf__json *pod,
                     struct hf__strbuf *why) {
        const char *name = part->outer->name, *node = hf__json_string(pod, "spec.nodeName");

        if (hf__json_path(pod, "metadata.deletionTimestamp"))
                hf__strbuf_printf(why, "pod %s is being deleted, cannot be assigned to a host",
                                  name);
        else if (node && *node)
                hf__strbuf_printf(why, "pod %s is already assigned to node \"%s\"", name, node);
        else if (hf__json_first(hf__json_path(pod, "spec.schedulingGates")))
                hf__strbuf_printf(why, "pod %s has non-empty .spec.schedulingGates", name);
        return why->n == 0 && why->error == 0;
}

/* Copies the members of a map in the Binding's metadata to the pod. If another program has stored a
 * value of another type there, leaves it: the update of the pod will be refused because of it. 0 or
 * -ENOMEM. */
static int merge_map(struct hf__json *pod, const struct hf__json *binding, const char *path) {
        const struct hf__json *from = hf__json_path(binding, path), *to = hf__json_path(pod, path);
        int r = 0;

        if (!from)
                return 0;
        if (!to || hf__json_is_null(to))
                r = hf__json_set(pod, path, hf__json_object());
        else if (!hf__json_is_object(to))
                return 0;
        return r == 0 ? hf__json_add_members(hf__json_path(pod, path), from, true) : r;
}

/* Sets the condition PodScheduled to True. 0 or -ENOMEM. */
static int set_scheduled(const struct hfd_part *part, struct hf__json *pod) {
        const struct hf_clock *clock = hf_host_clock(part->registry->host);
        struct hf__json *condition;
        char now[HF__MICROTIME_MAX];
        int r = hf__json_find_or_append(pod, "status.conditions", "type", "PodScheduled",
                                        &condition);

        if (r != 0 || hf__json_has_text(condition, "status", "True"))
                return r;
        hf__time_format(clock->real(clock->ctx) / HF_NSEC_PER_SEC, now);
        hf__json_drop(condition, "reason");
        hf__json_drop(condition, "message");
        r = hf__json_put_string(condition, "type", "PodScheduled");
        if (r == 0)
                r = hf__json_put_string(condition, "status", "True");
        return r == 0 ? hf__json_put_string(condition, "lastTransitionTime", now) : r;
}

static int bind_to_node(const struct hfd_part *part, struct hf__json *pod) {
        int r = hf__json_set_string(pod, "spec.nodeName",
                                    hf__json_string(part->body, "target.name"));

        hf__json_remove(pod, "status.nominatedNodeName");
        if (r == 0)
                r = merge_map(pod, part->body, "metadata.annotations");
        if (r == 0)
                r = merge_map(pod, part->body, "metadata.labels");
        return r == 0 ? set_scheduled(part, pod) : r;
}

static void bind_got(struct hfd_part *part) {
        struct hf__json *pod = hfd_part_parse_got(part);
        struct hf__strbuf why = {0};

        if (!pod) /* the part has ended */
                return;
        bool met = is_met(part, pod, "metadata.uid", "UID", &why) &&
                   is_met(part, pod, "metadata.resourceVersion", "ResourceVersion", &why);
        bool may = met && may_bind(part, pod, &why);
        int r = why.error;
        if (may)
                r = bind_to_node(part, pod);
        part->inner.subresource = HFD_SUB_BINDING; /* no other update may set the node */
        if (r != 0)
                hfd_part_finish_no_memory(part);
        else if (may)
                hfd_part_send(part, HFD_UPDATE, pod, on_bound);
        else
                refuse_binding(part, met ? "pods/binding" : "pods", why.data);
        hf__json_free(pod);
        hf__strbuf_done(&why);
}

static void on_pod(struct hfd_request *inner, const struct hfd_response *response) {
        hfd_part_run_with((struct hfd_part *)inner, response, bind_got);
}

static void get_pod(struct hfd_part *part) {
        part->inner.subresource = HFD_SUB_NONE;
        hfd_part_send(part, HFD_GET, NULL, on_pod);
}

static void bind_pod(struct hfd_part *part) {
        const char *node = hf__json_string(part->body, "target.name"),
                   *kind = hf__json_string(part->body, "target.kind");
        struct hfd_causes causes;
        struct hfd_response response = {0};

        hfd_causes_init(&causes);
        if (kind && *kind && strcmp(kind, "Node") != 0)
                hfd_cause_unsupported_text(&causes, "target.kind", kind, "\"Node\", \"<empty>\"");
        if (!node || !*node)
                hfd_cause_required(&causes, "target.name", "");
        if (causes.n == 0) {
                get_pod(part);
                return;
        }
        hfd_response_invalid(&response, part->outer->resource, part->outer->name, &causes);
        hfd_part_finish(part, &response);
        hfd_response_done(&response);
}

void hfd_binding_serve(struct hfd_part *part) { hfd_part_admit(part, &part->body, NULL, bind_pod); }
