/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of CSINodes, in which kubelets list the drivers of their nodes, and of
 * CSIStorageCapacities, in which drivers say how much storage is left.
 *
 * Invariants: the texts of the causes, their fields and their order are those of kube-apiserver,
 * because clients show them and tests compare them. An update checks only the drivers of a CSINode
 * that it changes or that occur twice. Repeated drivers and keys are found with an index, because
 * clients choose how many there are.
 */
#include <stdint.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/json_index.h"
#include "base/strbuf.h"
#include "server/resources/go_value.h"
#include "server/resources/strategies/admission/match_schema.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"
#include "server/resources/validation/meta_validation.h"
#include "server/resources/validation/resource_names.h"
#include "server/resources/workloads/workloads.h"
#include "server/schema/schema.h"

#define NODE_ID_MAX 256 /* bytes */

static const char drivers_field[] = "spec.drivers";

/* ---- drivers of a node ---- */

/* Labels of the node that say where it is. As in kube-apiserver, the field of the causes is that of
 * the driver. */
static void validate_topology_keys(const struct hf__json *keys, const char *field,
                                   struct hfd_causes *causes) {
        struct hf__json_index by_text;
        size_t i = 0;

        if (hfd_causes_check(causes, hf__json_index_init(&by_text, keys, NULL)))
                for (const struct hf__json *m = hf__json_first(keys); m;
                     m = hf__json_next(m), i++) {
                        const char *key = hf__json_text_or_empty(m);
                        const struct hf__json_index_entry *first =
                                hf__json_index_find(&by_text, key);
                        if (!*key)
                                hfd_cause_required(causes, field, "");
                        if (first && first->position < i)
                                hfd_cause_duplicate_text(causes, field, key);
                        hfd_qualified_name_validate(key, field, causes);
                }
        hf__json_index_done(&by_text);
}

static const struct hfd_schema *driver_schema(void) {
        return hfd_schema_of_member(hfd_schema_of_member(&hfd_csi_node_schema, "spec"), "drivers")
                ->items;
}

/* The number of volumes, which the driver may change at any time. */
static void validate_allocatable(const struct hf__json *driver, const char *field,
                                 struct hfd_causes *causes) {
        char path[HFD_FIELD_PATH_MAX];

        hfd_require_range(hf__json_get(driver, "allocatable"),
                          hfd_field_path(path, field, "allocatable"), "count", 0, INT64_MAX,
                          "must be greater than or equal to 0", causes);
}

/* Whether the old list has the driver with the same nodeID and topologyKeys. Then only the number
 * of its volumes can differ; a new number is checked here. was: an index of the old drivers by
 * name. */
static bool is_kept(const struct hf__json *driver, const char *field,
                    const struct hf__json_index *was, struct hfd_causes *causes) {
        const struct hf__json_index_entry *same =
                hf__json_index_find(was, hfd_text_of(driver, "name"));
        const struct hfd_schema *schema = driver_schema();

        if (!same || !hfd_causes_equal_member(causes, schema, driver, same->item, "nodeID") ||
            !hfd_causes_equal_member(causes, schema, driver, same->item, "topologyKeys"))
                return false;
        if (!hfd_causes_equal_member(causes, schema, driver, same->item, "allocatable"))
                validate_allocatable(driver, field, causes);
        return true;
}

static void validate_driver(const struct hf__json *driver, const char *field, bool is_repeated,
                            struct hfd_causes *causes) {
        const char *name = hfd_text_of(driver, "name"), *id = hfd_text_of(driver, "nodeID");
        char path[HFD_FIELD_PATH_MAX];

        hfd_csi_driver_name_validate(name, hfd_field_path(path, field, "name"), causes);
        (void)hfd_require_text(driver, field, "nodeID", causes);
        if (strlen(id) > NODE_ID_MAX)
                hfd_cause_invalid_text(causes, hfd_field_path(path, field, "nodeID"), id,
                                       "must be 256 characters or less");
        validate_allocatable(driver, field, causes);
        if (is_repeated)
                hfd_cause_duplicate_text(causes, hfd_field_path(path, field, "name"), name);
        validate_topology_keys(hf__json_get(driver, "topologyKeys"), field, causes);
}

/* Refuses a driver if a member of it other than `allocatable` has changed. */
static void refuse_change(const struct hf__json *driver, const struct hf__json *old,
                          struct hfd_causes *causes) {
        HF__CLEANUP(hf__json_cleanup) struct hf__json *now = hf__json_dup(driver);
        HF__CLEANUP(hf__json_cleanup) struct hf__json *was = hf__json_dup(old);
        struct hf__strbuf shown = {0};

        if (!now || !was) {
                hfd_causes_no_memory(causes);
                return;
        }
        hf__json_drop(now, "allocatable");
        hf__json_drop(was, "allocatable");
        if (hfd_causes_equal_by(causes, driver_schema(), now, was))
                return;
        hfd_go_fields_print(&shown, driver_schema(), now);
        hfd_cause_invalid(causes, drivers_field,
                          hfd_causes_check(causes, shown.error) ? shown.data : "{}",
                          "field is immutable");
        hf__strbuf_done(&shown);
}

/* A driver can be added or removed, but not changed, apart from the number of its volumes. The
 * causes have the order of the old list. */
static void refuse_changes(const struct hf__json *drivers, const struct hf__json *old,
                           struct hfd_causes *causes) {
        struct hf__json_index by_name;

        if (hfd_causes_check(causes, hf__json_index_init_texts(&by_name, drivers, "name")))
                for (const struct hf__json *m = hf__json_first(old); m; m = hf__json_next(m)) {
                        const struct hf__json_index_entry *now =
                                hf__json_index_find(&by_name, hfd_text_of(m, "name"));
                        if (now)
                                refuse_change(now->item, m, causes);
                }
        hf__json_index_done(&by_name);
}

/* A driver that was stored before there were rules may stay, so that the kubelet can list others.
 */
void hfd_csi_node_validate(const struct hf__json *object, const struct hf__json *old,
                           struct hfd_causes *causes) {
        const struct hf__json *drivers = hf__json_path(object, drivers_field),
                              *old_drivers = hf__json_path(old, drivers_field);
        struct hf__json_index by_name, was = {0};
        char path[HFD_FIELD_PATH_MAX];
        size_t i = 0;

        if (hfd_spec_is_kept(&hfd_csi_node_schema, object, old, causes))
                return;
        int r = hf__json_index_init_texts(&by_name, drivers, "name");
        if (r == 0)
                r = hf__json_index_init_texts(&was, old_drivers, "name");
        if (hfd_causes_check(causes, r))
                for (const struct hf__json *m = hf__json_first(drivers); m;
                     m = hf__json_next(m), i++) {
                        bool is_repeated = hfd_is_repeated(&by_name, hfd_text_of(m, "name"), i);
                        hfd_field_index(path, drivers_field, i);
                        if (is_repeated || !is_kept(m, path, &was, causes))
                                validate_driver(m, path, is_repeated, causes);
                }
        hf__json_index_done(&by_name);
        hf__json_index_done(&was);
        refuse_changes(drivers, old_drivers, causes);
}

/* ---- capacities ---- */

/* The cause shows the selector as it was sent: its Go type has the same names. */
static void refuse_topology(const struct hf__json *selector, struct hfd_causes *causes) {
        struct hf__strbuf shown = {0};

        hf__json_print(selector, &shown);
        bool is_shown = hfd_causes_check(causes, shown.error) && shown.n > 0;
        hfd_cause_invalid(causes, "nodeTopology", is_shown ? shown.data : "null",
                          "field is immutable");
        hf__strbuf_done(&shown);
}

/* The driver is asked how much storage is left for a class and a topology. An update may change the
 * answer (capacity, maximumVolumeSize), but neither the class nor the topology. */
void hfd_csi_storage_capacity_validate(const struct hf__json *object, const struct hf__json *old,
                                       struct hfd_causes *causes) {
        const struct hf__json *topology = hf__json_get(object, "nodeTopology"),
                              *capacity = hf__json_get(object, "capacity");
        const struct hfd_quantity amount = hfd_quantity_of_json(capacity);
        const char *class = hfd_text_of(object, "storageClassName");

        if (!old) {
                if (topology)
                        hfd_match_selector_validate(topology, "nodeTopology", causes);
                hfd_subdomain_validate(class, "storageClassName", causes);
        }
        if (amount.negative && !hfd_quantity_is_zero(&amount) &&
            !hfd_causes_equal(causes, capacity, hf__json_get(old, "capacity")))
                hfd_cause_invalid_quantity(causes, "capacity", &amount,
                                           "must be greater than or equal to 0");
        if (!old)
                return;
        if (!hfd_causes_equal_member(causes, &hfd_csi_storage_capacity_schema, object, old,
                                     "nodeTopology"))
                refuse_topology(topology, causes);
        if (strcmp(class, hfd_text_of(old, "storageClassName")) != 0)
                hfd_cause_invalid_text(causes, "storageClassName", class, "field is immutable");
}
