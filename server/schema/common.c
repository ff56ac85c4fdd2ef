/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The schemas of parts that many kinds have.
 *
 * Invariants: each table is sorted by name. A field never changes its protobuf number.
 */
#include "server/schema/common.h"

/* ---- ObjectMeta ---- */

static const struct hfd_schema_field owner_fields[] = {
        {"apiVersion", &hfd_schema_text, "The API version of the owner.", .protobuf_tag = 5,
         .flags = HFD_FIELD_REQUIRED},
        {"blockOwnerDeletion", &hfd_schema_boolean,
         "Whether a foreground deletion of the owner waits until this object is gone.",
         .protobuf_tag = 7, .flags = HFD_FIELD_POINTER},
        {"controller", &hfd_schema_boolean, "Whether the owner is the controller of this object.",
         .protobuf_tag = 6, .flags = HFD_FIELD_POINTER},
        {"kind", &hfd_schema_text, "The kind of the owner.", .protobuf_tag = 1,
         .flags = HFD_FIELD_REQUIRED},
        {"name", &hfd_schema_text, "The name of the owner.", .protobuf_tag = 3,
         .flags = HFD_FIELD_REQUIRED},
        {"uid", &hfd_schema_text, "The uid of the owner.", .protobuf_tag = 4,
         .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema owner =
        {HFD_STRUCT(HFD_META "OwnerReference", owner_fields), .atomic = true,
         .description = "An owner of an object. When all owners are gone, the object is deleted."};

static const struct hfd_schema fields_v1 = {.type = HFD_SCHEMA_ANY,
                                            .only_objects = true,
                                            .definition = HFD_META "FieldsV1",
                                            .description = "A set of fields, as a trie of paths."};

static const struct hfd_schema_field managed_fields[] = {
        {"apiVersion", &hfd_schema_text, "The version that the set of fields refers to.",
         .protobuf_tag = 3},
        {"fieldsType", &hfd_schema_text, "The format of the set: always FieldsV1.",
         .protobuf_tag = 6},
        {"fieldsV1", &fields_v1, "The fields that the manager owns.", .protobuf_tag = 7,
         .flags = HFD_FIELD_POINTER},
        {"manager", &hfd_schema_text, "Who manages the fields.", .protobuf_tag = 1},
        {"operation", &hfd_schema_text, "Apply, or Update for every other write.",
         .protobuf_tag = 2},
        {"subresource", &hfd_schema_text, "The subresource by which the fields were written.",
         .protobuf_tag = 8},
        {"time", &hfd_schema_time, "When the entry was last changed.", .protobuf_tag = 4,
         .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema managed_fields_entry =
        {HFD_STRUCT(HFD_META "ManagedFieldsEntry", managed_fields),
         .description = "The fields of an object that one manager owns."};

static const char *const by_uid[] = {"uid", NULL};

static const struct hfd_schema_field meta_fields[] = {
        {"annotations", &hfd_schema_map_of_texts,
         "Data that programs attach to the object. Selectors do not read it.", .protobuf_tag = 12},
        {"creationTimestamp", &hfd_schema_time, "When the object was created. Set by the server.",
         .protobuf_tag = 8},
        {"deletionGracePeriodSeconds", &hfd_schema_int64,
         "Seconds until the object is removed. Set by the server.", .protobuf_tag = 10,
         .flags = HFD_FIELD_POINTER},
        {"deletionTimestamp", &hfd_schema_time,
         "When the deletion of the object was requested. Set by the server.", .protobuf_tag = 9,
         .flags = HFD_FIELD_POINTER},
        {"finalizers", &hfd_schema_set_of_texts,
         "Names of controllers that must act before the object is removed. Each removes its own "
         "name.",
         .protobuf_tag = 14, .flags = HFD_FIELD_MERGE},
        {"generateName", &hfd_schema_text,
         "A prefix from which the server makes a name, if the object has none.", .protobuf_tag = 2},
        {"generation", &hfd_schema_int64,
         "Counts the changes of the desired state. Set by the server.", .protobuf_tag = 7},
        {"labels", &hfd_schema_map_of_texts, "Labels, by which selectors find the object.",
         .protobuf_tag = 11},
        {"managedFields", HFD_LIST_OF(&managed_fields_entry),
         "Who owns which fields of the object. Kept by the server.", .protobuf_tag = 17},
        {"name", &hfd_schema_text, "The name, unique in the namespace. It cannot be changed.",
         .protobuf_tag = 1},
        {"namespace", &hfd_schema_text,
         "The namespace in which the name is unique. It cannot be changed.", .protobuf_tag = 3},
        {"ownerReferences", HFD_LIST_OF(&owner, .list_type = HFD_LIST_MAP, .list_keys = by_uid),
         "The objects that own this one.", .merge_key = "uid", .protobuf_tag = 13,
         .flags = HFD_FIELD_MERGE},
        {"resourceVersion", &hfd_schema_text,
         "The version of the object in the store, an opaque text. Set by the server.",
         .protobuf_tag = 6},
        {"selfLink", &hfd_schema_text, "Deprecated, and never set.", .protobuf_tag = 4},
        {"uid", &hfd_schema_text, "Unique in time and space. Set by the server.",
         .protobuf_tag = 5},
};
const struct hfd_schema hfd_schema_object_meta = {HFD_STRUCT(HFD_META "ObjectMeta", meta_fields),
                                                  .description =
                                                          "The metadata that all objects have."};

static const struct hfd_schema_field type_meta_fields[] = {
        {"apiVersion", &hfd_schema_text, .protobuf_tag = 1},
        {"kind", &hfd_schema_text, .protobuf_tag = 2},
};
const struct hfd_schema hfd_schema_type_meta = {HFD_STRUCT(HFD_META "TypeMeta", type_meta_fields)};

/* ---- references ---- */

static const struct hfd_schema_field reference_fields[] = {
        {"apiVersion", &hfd_schema_text, "The API version of the object.", .protobuf_tag = 5},
        {"fieldPath", &hfd_schema_text, "The part of the object that is meant.", .protobuf_tag = 7},
        {"kind", &hfd_schema_text, "The kind of the object.", .protobuf_tag = 1},
        {"name", &hfd_schema_text, "The name of the object.", .protobuf_tag = 3},
        {"namespace", &hfd_schema_text, "The namespace of the object.", .protobuf_tag = 2},
        {"resourceVersion", &hfd_schema_text, "The version of the object that is meant.",
         .protobuf_tag = 6},
        {"uid", &hfd_schema_text, "The uid of the object.", .protobuf_tag = 4},
};
const struct hfd_schema hfd_schema_object_reference = {HFD_STRUCT(HFD_CORE "ObjectReference",
                                                                  reference_fields),
                                                       .atomic = true,
                                                       .description = "Names another object."};

static const struct hfd_schema_field local_reference_fields[] = {
        {"name", &hfd_schema_text, "The name of the object.", .protobuf_tag = 1},
};
const struct hfd_schema hfd_schema_local_object_reference =
        {HFD_STRUCT(HFD_CORE "LocalObjectReference", local_reference_fields), .atomic = true,
         .description = "Names an object in the same namespace."};

/* ---- selectors and conditions ---- */

static const struct hfd_schema_field term_fields[] = {
        {"key", &hfd_schema_text, "The key of the label.", .protobuf_tag = 1,
         .flags = HFD_FIELD_REQUIRED},
        {"operator", &hfd_schema_text, "In, NotIn, Exists or DoesNotExist.", .protobuf_tag = 2,
         .flags = HFD_FIELD_REQUIRED},
        {"values", &hfd_schema_list_of_texts, "The values for In and NotIn.", .protobuf_tag = 3},
};
static const struct hfd_schema term = {HFD_STRUCT(HFD_META "LabelSelectorRequirement", term_fields),
                                       .description = "One requirement of a label selector."};

static const struct hfd_schema_field selector_fields[] = {
        {"matchExpressions", HFD_LIST_OF(&term), "Requirements, all of which must be met.",
         .protobuf_tag = 2},
        {"matchLabels", &hfd_schema_map_of_texts, "Labels that must have these values.",
         .protobuf_tag = 1},
};
const struct hfd_schema hfd_schema_label_selector =
        {HFD_STRUCT(HFD_META "LabelSelector", selector_fields), .atomic = true,
         .description = "Selects objects by their labels. An empty selector selects all."};

static const struct hfd_schema_field condition_fields[] = {
        {"lastTransitionTime", &hfd_schema_time, "When the status last changed.", .protobuf_tag = 4,
         .flags = HFD_FIELD_REQUIRED},
        {"message", &hfd_schema_text, "Details for a human reader.", .protobuf_tag = 6,
         .flags = HFD_FIELD_REQUIRED},
        {"observedGeneration", &hfd_schema_int64,
         "The generation of the object that the condition is about.", .protobuf_tag = 3},
        {"reason", &hfd_schema_text, "Why the status last changed, in one word.", .protobuf_tag = 5,
         .flags = HFD_FIELD_REQUIRED},
        {"status", &hfd_schema_text, "True, False or Unknown.", .protobuf_tag = 2,
         .flags = HFD_FIELD_REQUIRED},
        {"type", &hfd_schema_text, "The type of the condition, in CamelCase.", .protobuf_tag = 1,
         .flags = HFD_FIELD_REQUIRED},
};
const struct hfd_schema hfd_schema_condition = {HFD_STRUCT(HFD_META "Condition", condition_fields),
                                                .description =
                                                        "One aspect of the state of an object."};

/* ---- DeleteOptions ---- */

static const struct hfd_schema_field precondition_fields[] = {
        {"resourceVersion", &hfd_schema_text, "The version that the object must have.",
         .protobuf_tag = 2, .flags = HFD_FIELD_POINTER},
        {"uid", &hfd_schema_text, "The uid that the object must have.", .protobuf_tag = 1,
         .flags = HFD_FIELD_POINTER},
};
const struct hfd_schema hfd_schema_preconditions =
        {HFD_STRUCT(HFD_META "Preconditions", precondition_fields),
         .description = "What must hold, or the delete is refused."};

static const struct hfd_schema_field delete_options_fields[] = {
        HFD_FIELD_API_VERSION,
        {"dryRun", &hfd_schema_list_of_texts, "All: nothing is deleted.", .protobuf_tag = 5},
        {"gracePeriodSeconds", &hfd_schema_int64, "Seconds until the object is removed.",
         .protobuf_tag = 1, .flags = HFD_FIELD_POINTER},
        {"ignoreStoreReadErrorWithClusterBreakingPotential", &hfd_schema_boolean,
         "Deletes an object that cannot be read.", .protobuf_tag = 6, .flags = HFD_FIELD_POINTER},
        HFD_FIELD_KIND,
        {"orphanDependents", &hfd_schema_boolean, "Deprecated; use propagationPolicy.",
         .protobuf_tag = 3, .flags = HFD_FIELD_POINTER},
        {"preconditions", &hfd_schema_preconditions, "What must hold for the delete.",
         .protobuf_tag = 2, .flags = HFD_FIELD_POINTER},
        {"propagationPolicy", &hfd_schema_text, "Orphan, Background or Foreground.",
         .protobuf_tag = 4, .flags = HFD_FIELD_POINTER},
};
const struct hfd_schema hfd_schema_delete_options = {HFD_STRUCT(HFD_META "DeleteOptions",
                                                                delete_options_fields),
                                                     .description = "How an object is deleted."};
