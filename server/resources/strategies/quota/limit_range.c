/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The schema, the defaults and the rules of LimitRanges. A LimitRange has bounds and defaults for
 * the resources that each pod, container or volume claim may request. Writes of pods and claims
 * apply them (server/quota/limit_range.h).
 *
 * Invariants: the work grows with n log n. A client may send a hundred thousand names in each map,
 * so the maps are searched with an index. The texts of the causes and their order are those of
 * kube-apiserver, because clients show them and tests compare them.
 */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/json_index.h"
#include "server/resources/causes.h"
#include "server/resources/strategies/strategies.h"
#include "server/resources/validation/meta_validation.h"
#include "server/resources/validation/names.h"
#include "server/resources/validation/resource_names.h"
#include "server/schema/common.h"

/* ---- the schema ---- */

/*
 * A row of a table is a field: its name in JSON, the schema of the value, a description for
 * `kubectl explain`, its number in protobuf (protobuf_tag), and flags (schema.h). Names and numbers
 * are those of k8s.io/api/core/v1 and never change. Rows are sorted by name, because look-ups
 * bisect a table.
 */

static const struct hfd_schema_field item_fields[] = {
        {"default", &hfd_schema_resource_list, "The limits of what names none.", .protobuf_tag = 4},
        {"defaultRequest", &hfd_schema_resource_list, "The requests of what names none.",
         .protobuf_tag = 5},
        {"max", &hfd_schema_resource_list, "The largest values.", .protobuf_tag = 2},
        {"maxLimitRequestRatio", &hfd_schema_resource_list,
         "How many times a request the limit may be.", .protobuf_tag = 6},
        {"min", &hfd_schema_resource_list, "The smallest values.", .protobuf_tag = 3},
        {"type", HFD_NAMED_TEXT(HFD_CORE "LimitType"), "Pod, Container or PersistentVolumeClaim.",
         .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema item_schema = {HFD_STRUCT(HFD_CORE "LimitRangeItem", item_fields),
                                              .description = "The bounds of one type."};

static const struct hfd_schema_field spec_fields[] = {
        {"limits", HFD_LIST_OF(&item_schema), "The bounds, one element for each type.",
         .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema spec_schema = {HFD_STRUCT(HFD_CORE "LimitRangeSpec", spec_fields),
                                              .description = "The bounds of a namespace."};

static const struct hfd_schema_field fields[] = {
        HFD_FIELD_API_VERSION,
        HFD_FIELD_KIND,
        HFD_FIELD_METADATA,
        {"spec", &spec_schema, "The bounds.", .protobuf_tag = 2},
};
const struct hfd_schema hfd_limit_range_schema =
        {HFD_STRUCT(HFD_CORE "LimitRange", fields),
         .description = "LimitRange bounds what each object of a namespace may ask for."};

/* ---- one element of spec.limits ---- */

/* The maps of an element, in the order in which kube-apiserver checks them. */
enum map { MAX, MIN, DEFAULT, DEFAULT_REQUEST, RATIO, N_MAPS };

static const char *const map_names[N_MAPS] = {"max", "min", "default", "defaultRequest",
                                              "maxLimitRequestRatio"};

/* An element while it is validated. */
struct item {
        const struct hf__json *json;
        const char *type;                   /* "Pod"; "" if it is absent */
        size_t number;                      /* its index in spec.limits */
        struct hf__json_index maps[N_MAPS]; /* by the names of resources; borrow from json */
        struct hfd_causes *causes;
};

/* The values that one resource has in the maps. of[map] and text[map] are set only if has[map]. */
struct values {
        const char *name; /* of the resource */
        bool has[N_MAPS];
        struct hfd_quantity of[N_MAPS];
        char text[N_MAPS][HFD_QUANTITY_TEXT_MAX];
};

#define FIELD_MAX 160

/* Writes the path of a value: "spec.limits[0].max[cpu]". A long key is cut. */
static void make_field(const struct item *item, enum map map, const char *key,
                       char field[FIELD_MAX]) {
        (void)snprintf(field, FIELD_MAX, "spec.limits[%zu].%s[%.80s]", item->number, map_names[map],
                       key);
}

/* An element for Pods has no defaults: amounts for a whole pod cannot be divided among containers.
 */
static bool is_forbidden(const struct item *item, enum map map) {
        return strcmp(item->type, "Pod") == 0 && (map == DEFAULT || map == DEFAULT_REQUEST);
}

static void read_values(const struct item *item, const char *name, struct values *values) {
        *values = (struct values){.name = name};
        for (unsigned i = 0; i < N_MAPS; i++) {
                struct hf__json_index_entry *entry = hf__json_index_find(&item->maps[i], name);
                values->has[i] = entry != NULL;
                if (!entry)
                        continue;
                values->of[i] = hfd_quantity_of_json(entry->item);
                hfd_quantity_format(&values->of[i], values->text[i]);
        }
}

/* Adds a cause if the value in the map `lower` is greater than the one in `upper`. place: the map
 * in the path of the cause; shown: the map whose value the cause shows. Both follow kube-apiserver.
 */
static void validate_order(const struct item *item, const struct values *values, enum map lower,
                           enum map upper, enum map place, enum map shown) {
        static const char *const words[N_MAPS] = {[MAX] = "max value",
                                                  [MIN] = "min value",
                                                  [DEFAULT] = "default value",
                                                  [DEFAULT_REQUEST] = "default request value"};
        const char *than = words[upper];
        char field[FIELD_MAX], detail[200];

        if (!values->has[lower] || !values->has[upper] ||
            hfd_quantity_compare(&values->of[lower], &values->of[upper]) <= 0)
                return;
        if (lower == DEFAULT_REQUEST && upper == DEFAULT)
                than = "default limit value";
        make_field(item, place, values->name, field);
        (void)snprintf(detail, sizeof detail, "%s %s is greater than %s %s", words[lower],
                       values->text[lower], than, values->text[upper]);
        hfd_cause_invalid_quantity(item->causes, field, &values->of[shown], detail);
}

/* The ratio of a limit to its request is at least 1, and at most max/min: no object could reach a
 * larger ratio. The comparison with max/min uses floating point, because kube-apiserver does. */
static void validate_ratio(const struct item *item, const struct values *values) {
        const struct hfd_quantity one = hfd_quantity_of(1);
        char field[FIELD_MAX], detail[200];

        if (!values->has[RATIO])
                return;
        make_field(item, RATIO, values->name, field);
        if (hfd_quantity_compare(&values->of[RATIO], &one) < 0) {
                (void)snprintf(detail, sizeof detail, "ratio %s is less than 1",
                               values->text[RATIO]);
                hfd_cause_invalid_quantity(item->causes, field, &values->of[RATIO], detail);
        }
        if (!values->has[MIN] || !values->has[MAX])
                return;
        double min = hfd_quantity_number(&values->of[MIN]),
               max = hfd_quantity_number(&values->of[MAX]);
        /* A minimum of zero bounds no ratio. */
        if (!(min > 0) || !(hfd_quantity_number(&values->of[RATIO]) > max / min))
                return;
        (void)snprintf(detail, sizeof detail, "ratio %s is greater than max/min = %f",
                       values->text[RATIO], max / min);
        hfd_cause_invalid_quantity(item->causes, field, &values->of[RATIO], detail);
}

/* A resource that cannot be overcommitted must have the same limit and request. */
static void validate_equal_defaults(const struct item *item, const struct values *values) {
        char field[FIELD_MAX], detail[300];

        if (!values->has[DEFAULT] || !values->has[DEFAULT_REQUEST] ||
            hfd_resource_name_may_overcommit(values->name) ||
            hfd_quantity_compare(&values->of[DEFAULT], &values->of[DEFAULT_REQUEST]) == 0)
                return;
        make_field(item, DEFAULT_REQUEST, values->name, field);
        (void)snprintf(detail, sizeof detail,
                       "default value %s must equal to defaultRequest value %s in %.80s",
                       values->text[DEFAULT], values->text[DEFAULT_REQUEST], values->name);
        hfd_cause_invalid_quantity(item->causes, field, &values->of[DEFAULT_REQUEST], detail);
}

/* The order of the checks is kube-apiserver's. name: of a resource. */
static void validate_values(const struct item *item, const char *name) {
        struct values values;

        read_values(item, name, &values);
        validate_order(item, &values, MIN, MAX, MIN, MIN);
        validate_order(item, &values, MIN, DEFAULT_REQUEST, DEFAULT_REQUEST, DEFAULT_REQUEST);
        validate_order(item, &values, DEFAULT_REQUEST, MAX, DEFAULT_REQUEST, DEFAULT_REQUEST);
        validate_order(item, &values, DEFAULT_REQUEST, DEFAULT, DEFAULT_REQUEST, DEFAULT_REQUEST);
        validate_order(item, &values, MIN, DEFAULT, DEFAULT, MIN);
        validate_order(item, &values, DEFAULT, MAX, DEFAULT, MAX);
        validate_ratio(item, &values);
        validate_equal_defaults(item, &values);
}

static void validate_names(const struct item *item, enum map map) {
        bool of_containers = strcmp(item->type, "Pod") == 0 || strcmp(item->type, "Container") == 0;
        const struct hf__json *members = hf__json_get(item->json, map_names[map]);
        char field[FIELD_MAX];

        if (is_forbidden(item, map)) {
                (void)snprintf(field, sizeof field, "spec.limits[%zu].%s", item->number,
                               map_names[map]);
                if (hf__json_first(members))
                        hfd_cause_forbidden(item->causes, field,
                                            "may not be specified when `type` is 'Pod'");
                return;
        }
        for (const struct hf__json *m = hf__json_first(members); m; m = hf__json_next(m)) {
                make_field(item, map, hf__json_key(m), field);
                if (of_containers)
                        hfd_resource_name_validate_container(hf__json_key(m), field, item->causes);
                else
                        hfd_resource_name_validate(hf__json_key(m), field, item->causes);
        }
}

/* Checks the values of each resource once: in the first map that has its name. */
static void validate_all_values(const struct item *item) {
        for (unsigned i = 0; i < N_MAPS; i++)
                for (size_t k = 0; k < item->maps[i].n; k++) {
                        const char *name = item->maps[i].entries[k].text;
                        bool seen = false;
                        for (unsigned before = 0; before < i && !seen; before++)
                                seen = hf__json_index_find(&item->maps[before], name) != NULL;
                        if (!seen)
                                validate_values(item, name);
                }
}

static void validate_type(const struct item *item) {
        char field[FIELD_MAX];

        (void)snprintf(field, sizeof field, "spec.limits[%zu].type", item->number);
        if (!hfd_is_qualified_name(item->type))
                hfd_qualified_name_validate(item->type, field, item->causes);
        else if (!strchr(item->type, '/') && strcmp(item->type, "Pod") != 0 &&
                 strcmp(item->type, "Container") != 0 &&
                 strcmp(item->type, "PersistentVolumeClaim") != 0)
                hfd_cause_invalid_text(item->causes, field, item->type,
                                       "must be a standard limit type or fully qualified");
}

static void validate_item(struct item *item) {
        char field[FIELD_MAX];
        int r = 0;

        for (unsigned i = 0; i < N_MAPS; i++)
                validate_names(item, (enum map)i);
        (void)snprintf(field, sizeof field, "spec.limits[%zu].limits", item->number);
        for (unsigned i = 0; i < N_MAPS && r == 0; i++)
                r = hf__json_index_init(&item->maps[i],
                                        is_forbidden(item, (enum map)i)
                                                ? NULL
                                                : hf__json_get(item->json, map_names[i]),
                                        NULL);
        if (hfd_causes_check(item->causes, r) && strcmp(item->type, "PersistentVolumeClaim") == 0 &&
            !hf__json_index_find(&item->maps[MIN], "storage") &&
            !hf__json_index_find(&item->maps[MAX], "storage"))
                hfd_cause_required(item->causes, field,
                                   "either minimum or maximum storage value is required, but "
                                   "neither was provided");
        if (r == 0)
                validate_all_values(item);
        for (unsigned i = 0; i < N_MAPS; i++)
                hf__json_index_done(&item->maps[i]);
}

/* ---- defaults ---- */

/* Adds to the map `to` the members of the map `from` whose names it does not have. 0 or -ENOMEM. */
static int add_missing(struct hf__json *item, const char *to, const char *from) {
        const struct hf__json *values = hf__json_get(item, from);
        struct hf__json_index had;
        int r = 0;

        if (!hf__json_is_object(values) || !hf__json_first(values))
                return 0;
        if (!hf__json_is_object(hf__json_get(item, to)))
                r = hf__json_put(item, to, hf__json_object());
        if (r != 0)
                return r;
        struct hf__json *map = hf__json_get(item, to);
        r = hf__json_index_init(&had, map, NULL);
        for (const struct hf__json *m = hf__json_first(values); m && r == 0; m = hf__json_next(m))
                if (!hf__json_index_find(&had, hf__json_key(m)))
                        r = hf__json_add(map, hf__json_key(m), hf__json_dup(m));
        hf__json_index_done(&had);
        return r;
}

/* Only elements of the type Container are completed. The order counts: default limits come from the
 * largest values, default requests from the default limits, and then from the smallest values. */
int hfd_limit_range_prepare(struct hf__json *object, const struct hf__json *old) {
        int r = 0;

        (void)old;
        for (struct hf__json *m = hf__json_first(hf__json_path(object, "spec.limits")); m && r == 0;
             m = hf__json_next(m)) {
                if (!hf__json_has_text(m, "type", "Container"))
                        continue;
                r = add_missing(m, "default", "max");
                if (r == 0)
                        r = add_missing(m, "defaultRequest", "default");
                if (r == 0)
                        r = add_missing(m, "defaultRequest", "min");
        }
        return r;
}

/* ---- all elements of spec.limits ---- */

void hfd_limit_range_validate(const struct hf__json *object, const struct hf__json *old,
                              struct hfd_causes *causes) {
        const struct hf__json *limits = hf__json_path(object, "spec.limits");
        struct hf__json_index types;
        int r = hf__json_index_init(&types, limits, "type");
        size_t i = 0;

        for (const struct hf__json *m = hf__json_first(limits); m && hfd_causes_check(causes, r);
             m = hf__json_next(m), i++) {
                const char *type = hf__json_string(m, "type");
                struct item item = {.json = m,
                                    .type = type ? type : "",
                                    .number = i,
                                    .causes = causes};
                char field[FIELD_MAX];
                validate_type(&item);
                (void)snprintf(field, sizeof field, "spec.limits[%zu].type", i);
                if (type && hf__json_index_find(&types, type)->position < i)
                        hfd_cause_duplicate_text(causes, field, type);
                validate_item(&item);
        }
        hf__json_index_done(&types);
}
