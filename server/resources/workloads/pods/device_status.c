/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the status of a pod says of devices: the health of the devices that a container got
 * (allocatedResourcesStatus), and from which requests of a claim the scheduler takes the extended
 * resources of containers (extendedResourceClaimStatus).
 *
 * Invariants: the texts of the causes, their paths and their order are those of kube-apiserver,
 * because clients show them and tests compare them. What a container uses is looked up in an index,
 * because a client chooses how many containers, resources and statuses there are.
 */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/json_index.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"
#include "server/resources/workloads/workloads.h"

#define MESSAGE_MAX 1024 /* bytes of a message about the health of a device */

/* The containers of some lists, and what each of them uses. */
struct uses {
        /* Arrays. names: "NAME" of each container. texts: "NAME/RESOURCE", "NAME/claim:CLAIM" or
         * "NAME/claim:CLAIM/REQUEST" for each use. */
        struct hf__json *names, *texts;
        struct hf__json_index by_name, by_text;
};

/* ---- what containers use ---- */

/* name: of the container. what: a resource, or "claim:" and the name of a claim. request: that of
 * the claim; "" = none. 0 or -ENOMEM. */
static int add_use(struct uses *uses, const char *name, const char *what, const char *request) {
        struct hf__strbuf text = {0};

        hf__strbuf_printf(&text, "%s/%s%s%s", name, what, *request ? "/" : "", request);
        int r = text.error == 0 ? hf__json_append_string(uses->texts, text.data) : text.error;
        hf__strbuf_done(&text);
        return r;
}

static int add_claim(struct uses *uses, const char *name, const struct hf__json *claim) {
        struct hf__strbuf text = {0};

        hf__strbuf_printf(&text, "claim:%s", hfd_text_of(claim, "name"));
        int r = text.error == 0 ? add_use(uses, name, text.data, hfd_text_of(claim, "request"))
                                : text.error;
        hf__strbuf_done(&text);
        return r;
}

static int add_container(struct uses *uses, const struct hf__json *container) {
        const struct hf__json *resources = hf__json_get(container, "resources");
        const char *name = hfd_text_of(container, "name");
        int r = hf__json_append_string(uses->names, name);

        for (const struct hf__json *m = hf__json_first(hf__json_get(resources, "requests"));
             m && r == 0; m = hf__json_next(m))
                r = add_use(uses, name, hf__json_key(m), "");
        for (const struct hf__json *m = hf__json_first(hf__json_get(resources, "claims"));
             m && r == 0; m = hf__json_next(m))
                r = add_claim(uses, name, m);
        return r;
}

/* lists: of the pod's spec; ends with NULL. The caller calls done_uses in any case. 0 or -ENOMEM.
 */
static int init_uses(struct uses *uses, const struct hf__json *spec, const char *const *lists) {
        int r;

        *uses = (struct uses){.names = hf__json_array(), .texts = hf__json_array()};
        r = uses->names && uses->texts ? 0 : -ENOMEM;
        for (; *lists; lists++)
                for (const struct hf__json *m = hf__json_first(hf__json_get(spec, *lists));
                     m && r == 0; m = hf__json_next(m))
                        r = add_container(uses, m);
        if (r == 0)
                r = hf__json_index_init(&uses->by_name, uses->names, NULL);
        return r == 0 ? hf__json_index_init(&uses->by_text, uses->texts, NULL) : r;
}

static void done_uses(struct uses *uses) {
        hf__json_index_done(&uses->by_name);
        hf__json_index_done(&uses->by_text);
        hf__json_free(uses->names);
        hf__json_free(uses->texts);
}

/* Whether there is a container of this name, and it does not use the resource. */
static bool is_unused(const struct uses *uses, const char *container, const char *resource,
                      struct hfd_causes *causes) {
        struct hf__strbuf text = {0};
        bool unused = false;

        if (!hf__json_index_find(&uses->by_name, container))
                return false;
        hf__strbuf_printf(&text, "%s/%s", container, resource);
        if (hfd_causes_check(causes, text.error))
                unused = !hf__json_index_find(&uses->by_text, text.data);
        hf__strbuf_done(&text);
        return unused;
}

/* ---- the health of devices ---- */

static void validate_health(const struct hf__json *device, const char *field,
                            struct hfd_causes *causes) {
        static const char *const states[] = {"Healthy", "Unhealthy", "Unknown", NULL};
        const struct hf__json *message = hf__json_get(device, "message");
        const char *text = hf__json_text_or_empty(message);
        char path[HFD_FIELD_PATH_MAX];

        hfd_refuse_others(hfd_text_of(device, "health"), hfd_field_path(path, field, "health"),
                          states, causes);
        hfd_field_path(path, field, "message");
        if (message && !*text)
                hfd_cause_required(causes, path, "must be non-empty if specified");
        else if (strlen(text) > MESSAGE_MAX)
                hfd_cause_too_long(causes, path, "may not be more than 1024 bytes");
}

static void validate_devices(const struct hf__json *list, const char *field,
                             struct hfd_causes *causes) {
        struct hf__json_index ids;
        char item[HFD_FIELD_PATH_MAX], path[HFD_FIELD_PATH_MAX];
        size_t i = 0;

        if (hfd_causes_check(causes, hf__json_index_init(&ids, list, "resourceID")))
                for (const struct hf__json *m = hf__json_first(list); m;
                     m = hf__json_next(m), i++) {
                        const char *id = hfd_text_of(m, "resourceID");
                        validate_health(m, hfd_field_index(item, field, i), causes);
                        if (hfd_is_repeated(&ids, id, i))
                                hfd_cause_duplicate_text(causes,
                                                         hfd_field_path(path, item, "resourceID"),
                                                         id);
                }
        hf__json_index_done(&ids);
}

/* status: of a container. field: the path of allocatedResourcesStatus. */
static void validate_allocated(const struct hf__json *status, const struct uses *uses,
                               const char *field, struct hfd_causes *causes) {
        char item[HFD_FIELD_PATH_MAX], path[HFD_FIELD_PATH_MAX];
        size_t i = 0;

        for (const struct hf__json *m =
                     hf__json_first(hf__json_get(status, "allocatedResourcesStatus"));
             m; m = hf__json_next(m), i++) {
                const char *name = hfd_text_of(m, "name");
                hfd_field_index(item, field, i);
                if (is_unused(uses, hfd_text_of(status, "name"), name, causes))
                        hfd_cause_invalid_text(causes, hfd_field_path(path, item, "name"), name,
                                               hf__text_begins_with(name, "claim:")
                                                       ? "must match one of the container's "
                                                         "resource claims in a format "
                                                         "'claim:<claimName>/<request>' or "
                                                         "'claim:<claimName>' if request is empty"
                                                       : "must match one of the container's "
                                                         "resource requests");
                validate_devices(hf__json_get(m, "resources"),
                                 hfd_field_path(path, item, "resources"), causes);
        }
}

/* list: the path of the statuses. uses NULL: the list is that of ephemeral containers, which get no
 * devices. */
static void validate_statuses(const struct hf__json *pod, const char *list, const struct uses *uses,
                              struct hfd_causes *causes) {
        char item[HFD_FIELD_PATH_MAX], path[HFD_FIELD_PATH_MAX];
        size_t i = 0;

        for (const struct hf__json *m = hf__json_first(hf__json_path(pod, list)); m;
             m = hf__json_next(m), i++) {
                if (!hf__json_first(hf__json_get(m, "allocatedResourcesStatus")))
                        continue;
                hfd_field_path(path, hfd_field_index(item, list, i), "allocatedResourcesStatus");
                if (uses)
                        validate_allocated(m, uses, path, causes);
                else
                        hfd_cause_forbidden(causes, path,
                                            "must not be specified in container status");
        }
}

static bool has_devices(const struct hf__json *pod, const char *list) {
        for (const struct hf__json *m = hf__json_first(hf__json_path(pod, list)); m;
             m = hf__json_next(m))
                if (hf__json_first(hf__json_get(m, "allocatedResourcesStatus")))
                        return true;
        return false;
}

/* Few containers have devices, and kubelets write the status often, so the containers are looked at
 * only if a status needs it. */
void hfd_device_health_validate(const struct hf__json *pod, struct hfd_causes *causes) {
        static const char *const lists[][2] = {{"containers", NULL}, {"initContainers", NULL}},
                                 *const statuses[] = {"status.containerStatuses",
                                                      "status.initContainerStatuses"};

        for (size_t i = 0; i < 2; i++) {
                struct uses uses;
                if (!has_devices(pod, statuses[i]))
                        continue;
                if (hfd_causes_check(causes, init_uses(&uses, hf__json_get(pod, "spec"), lists[i])))
                        validate_statuses(pod, statuses[i], &uses, causes);
                done_uses(&uses);
        }
        validate_statuses(pod, "status.ephemeralContainerStatuses", NULL, causes);
}

/* ---- extended resources ---- */

static int print_mapping(const struct hf__json *mapping, struct hf__strbuf *ret_text) {
        hf__strbuf_printf(ret_text, "%s\n%s\n%s", hfd_text_of(mapping, "containerName"),
                          hfd_text_of(mapping, "resourceName"),
                          hfd_text_of(mapping, "requestName"));
        return ret_text->error;
}

/* texts NULL counts as out of memory. */
static int list_mappings(const struct hf__json *mappings, struct hf__json *texts) {
        int r = texts ? 0 : -ENOMEM;

        for (const struct hf__json *m = hf__json_first(mappings); m && r == 0;
             m = hf__json_next(m)) {
                struct hf__strbuf text = {0};
                r = print_mapping(m, &text);
                if (r == 0)
                        r = hf__json_append_string(texts, text.data);
                hf__strbuf_done(&text);
        }
        return r;
}

static bool is_mapped_before(const struct hf__json *mapping, const struct hf__json_index *all,
                             size_t position, struct hfd_causes *causes) {
        struct hf__strbuf text = {0};
        bool repeated = false;

        if (hfd_causes_check(causes, print_mapping(mapping, &text)))
                repeated = hfd_is_repeated(all, text.data, position);
        hf__strbuf_done(&text);
        return repeated;
}

/* As in kube-apiserver, the path of requestName has no requestMappings[i]. */
static void validate_mapping(const struct hf__json *mapping, const struct uses *uses,
                             const char *field, struct hfd_causes *causes) {
        const char *container = hfd_text_of(mapping, "containerName"),
                   *resource = hfd_text_of(mapping, "resourceName");
        char path[HFD_FIELD_PATH_MAX];

        if (!hf__json_index_find(&uses->by_name, container))
                hfd_cause_invalid_text(causes, hfd_field_path(path, field, "containerName"),
                                       container,
                                       "must match the name of an entry in "
                                       "spec.initContainers.name or spec.containers.name");
        else if (is_unused(uses, container, resource, causes))
                hfd_cause_invalid_text(causes, hfd_field_path(path, field, "resourceName"),
                                       resource,
                                       "must match the extended resource name of an entry in "
                                       "spec.initContainers.resources.requests or "
                                       "spec.containers.resources.requests");
        hfd_dns_label_validate(hfd_text_of(mapping, "requestName"),
                               "status.extendedResourceClaimStatus.requestName", causes);
}

static void validate_mappings(const struct hf__json *mappings, const struct uses *uses,
                              const struct hf__json_index *all, struct hfd_causes *causes) {
        static const char *const names[] = {"containerName", "resourceName", "requestName"};
        char item[HFD_FIELD_PATH_MAX], path[HFD_FIELD_PATH_MAX];
        size_t i = 0;

        for (const struct hf__json *m = hf__json_first(mappings); m; m = hf__json_next(m), i++) {
                hfd_field_index(item, "status.extendedResourceClaimStatus.requestMappings", i);
                validate_mapping(m, uses, item, causes);
                if (is_mapped_before(m, all, i, causes))
                        for (size_t k = 0; k < 3; k++)
                                hfd_cause_duplicate_text(causes,
                                                         hfd_field_path(path, item, names[k]),
                                                         hfd_text_of(m, names[k]));
        }
}

void hfd_extended_claim_validate(const struct hf__json *pod, struct hfd_causes *causes) {
        static const char *const lists[] = {"initContainers", "containers", NULL};
        static const char field[] = "status.extendedResourceClaimStatus";
        const struct hf__json *status = hf__json_path(pod, field),
                              *mappings = hf__json_get(status, "requestMappings");
        HF__CLEANUP(hf__json_cleanup) struct hf__json *texts = NULL;
        struct hf__json_index all = {0};
        struct uses uses;

        if (!status)
                return;
        if (!hf__json_first(mappings))
                hfd_cause_required(causes, "status.extendedResourceClaimStatus.requestMappings",
                                   "at least one request mapping is required");
        texts = hf__json_array();
        int r = init_uses(&uses, hf__json_get(pod, "spec"), lists);
        if (r == 0)
                r = list_mappings(mappings, texts);
        if (r == 0)
                r = hf__json_index_init(&all, texts, NULL);
        if (hfd_causes_check(causes, r))
                validate_mappings(mappings, &uses, &all, causes);
        hf__json_index_done(&all);
        done_uses(&uses);
        if (hfd_require_text(status, field, "resourceClaimName", causes))
                hfd_subdomain_validate(hfd_text_of(status, "resourceClaimName"),
                                       "status.extendedResourceClaimStatus.resourceClaimName",
                                       causes);
}
