/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The schemas of parts that many kinds have, and of DeleteOptions.
 *
 * Invariants: each table is sorted by name, because fields are found by bisection. A field never
 * changes its protobuf number: clients that were built with the old one would read another field.
 *
 * A part is atomic if Kubernetes declares it so (x-kubernetes-map-type). Server-side apply then
 * treats the whole part as one value: two managers that each set some of its fields could together
 * state what neither of them meant.
 *
 * HFD_FIELD_POINTER follows Go's types. Where it is missing, protobuf cannot tell an absent field
 * from a zero.
 */
#include "server/schema/common.h"

/* ---- ObjectMeta ---- */

/* blockOwnerDeletion and controller are pointers, so a typed client that reads a reference without
 * them does not write `false` back. */
static const struct hfd_schema_field owner_fields[] = {
        {"apiVersion", &hfd_schema_text, "API version of the referent.", .protobuf_tag = 5,
         .flags = HFD_FIELD_REQUIRED},
        {"blockOwnerDeletion", &hfd_schema_boolean,
         "If true, AND if the owner has the \"foregroundDeletion\" finalizer, then the "
         "owner cannot be deleted from the key-value store until this reference is "
         "removed. See "
         "https://kubernetes.io/docs/concepts/architecture/garbage-collection/#foreground-deletion "
         "for how the garbage collector interacts with this field and enforces the "
         "foreground deletion. Defaults to false. To set this field, a user needs "
         "\"delete\" permission of the owner, otherwise 422 (Unprocessable Entity) will "
         "be returned.",
         .protobuf_tag = 7, .flags = HFD_FIELD_POINTER},
        {"controller", &hfd_schema_boolean,
         "If true, this reference points to the managing controller.", .protobuf_tag = 6,
         .flags = HFD_FIELD_POINTER},
        {"kind", &hfd_schema_text,
         "Kind of the referent. More info: "
         "https://git.k8s.io/community/contributors/devel/sig-architecture/"
         "api-conventions.md#types-kinds",
         .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
        {"name", &hfd_schema_text,
         "Name of the referent. More info: "
         "https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names",
         .protobuf_tag = 3, .flags = HFD_FIELD_REQUIRED},
        {"uid", HFD_NAMED_TEXT("io.k8s.apimachinery.pkg.types.UID"),
         "UID of the referent. More info: "
         "https://kubernetes.io/docs/concepts/overview/working-with-objects/names#uids",
         .protobuf_tag = 4, .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema owner =
        {HFD_STRUCT(HFD_META "OwnerReference", owner_fields), .atomic = true,
         .description =
                 "OwnerReference contains enough information to let you identify an owning "
                 "object. An owning object must be in the same namespace as the dependent, or "
                 "be cluster-scoped, so there is no namespace field."};

/* ANY, because the names of its members are parts of paths and no fields; server/apply/sets parses
 * it. In protobuf it is a message with its JSON text. */
static const struct hfd_schema fields_v1 =
        {.type = HFD_SCHEMA_ANY,
         .only_objects = true,
         .definition = HFD_META "FieldsV1",
         .description =
                 "FieldsV1 stores a set of fields in a data structure like a Trie, in JSON "
                 "format.\n\nEach key is either a '.' representing the field itself, and will "
                 "always map to an empty set, or a string representing a sub-field or item. The "
                 "string will follow one of these four formats: 'f:<name>', where <name> is the "
                 "name of a field in a struct, or key in a map 'v:<value>', where <value> is "
                 "the exact json formatted value of a list item 'i:<index>', where <index> is "
                 "position of a item in a list 'k:<keys>', where <keys> is a map of  a list "
                 "item's key fields to their unique values If a key maps to an empty Fields "
                 "value, the field that key represents is part of the set.\n\nThe exact format "
                 "is defined in sigs.k8s.io/structured-merge-diff"};

/* The list of these entries is atomic. Clients do not apply it: the server computes it for each
 * write (server/apply/ownership.c). */
static const struct hfd_schema_field managed_fields[] = {
        {"apiVersion", &hfd_schema_text,
         "APIVersion defines the version of this resource that this field set applies "
         "to. The format is \"group/version\" just like the top-level APIVersion field. "
         "It is necessary to track the version of a field set because it cannot be "
         "automatically converted.",
         .protobuf_tag = 3},
        {"fieldsType", &hfd_schema_text,
         "FieldsType is the discriminator for the different fields format and version. "
         "There is currently only one possible value: \"FieldsV1\"",
         .protobuf_tag = 6},
        {"fieldsV1", &fields_v1,
         "FieldsV1 holds the first JSON version format as described in the \"FieldsV1\" "
         "type.",
         .protobuf_tag = 7, .flags = HFD_FIELD_POINTER},
        {"manager", &hfd_schema_text,
         "Manager is an identifier of the workflow managing these fields.", .protobuf_tag = 1},
        {"operation", HFD_NAMED_TEXT(HFD_META "ManagedFieldsOperationType"),
         "Operation is the type of operation which lead to this ManagedFieldsEntry "
         "being created. The only valid values for this field are 'Apply' and 'Update'.",
         .protobuf_tag = 2},
        {"subresource", &hfd_schema_text,
         "Subresource is the name of the subresource used to update that object, or "
         "empty string if the object was updated through the main resource. The value "
         "of this field is used to distinguish between managers, even if they share the "
         "same name. For example, a status update will be distinct from a regular "
         "update using the same manager name. Note that the APIVersion field is not "
         "related to the Subresource field and it always corresponds to the version of "
         "the main resource.",
         .protobuf_tag = 8},
        {"time", &hfd_schema_time,
         "Time is the timestamp of when the ManagedFields entry was added. The "
         "timestamp will also be updated if a field is added, the manager changes any "
         "of the owned fields value or removes a field. The timestamp does not update "
         "when a field is removed from the entry because another manager took it over.",
         .protobuf_tag = 4, .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema managed_fields_entry =
        {HFD_STRUCT(HFD_META "ManagedFieldsEntry", managed_fields),
         .description =
                 "ManagedFieldsEntry is a workflow-id, a FieldSet and the group version of the "
                 "resource that the fieldset applies to."};

/* Controllers add owner references beside each other. The uid is the key, because an owner that is
 * created anew has the same name and is another object. */
static const char *const by_uid[] = {"uid", NULL};

/* selfLink is never set, but it stays in the table: old clients send it, and a strict request must
 * not fail because of it. Labels, annotations and finalizers have an owner for each entry, so
 * controllers share them without conflicts. */
static const struct hfd_schema_field meta_fields[] = {
        {"annotations", &hfd_schema_map_of_texts,
         "Annotations is an unstructured key value map stored with a resource that may "
         "be set by external tools to store and retrieve arbitrary metadata. They are "
         "not queryable and should be preserved when modifying objects. More info: "
         "https://kubernetes.io/docs/concepts/overview/working-with-objects/annotations",
         .protobuf_tag = 12},
        {"creationTimestamp", &hfd_schema_time,
         "CreationTimestamp is a timestamp representing the server time when this "
         "object was created. It is not guaranteed to be set in happens-before order "
         "across separate operations. Clients may not set this value. It is represented "
         "in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null "
         "for lists. More info: "
         "https://git.k8s.io/community/contributors/devel/sig-architecture/"
         "api-conventions.md#metadata",
         .protobuf_tag = 8},
        {"deletionGracePeriodSeconds", &hfd_schema_int64,
         "Number of seconds allowed for this object to gracefully terminate before it "
         "will be removed from the system. Only set when deletionTimestamp is also set. "
         "May only be shortened. Read-only.",
         .protobuf_tag = 10, .flags = HFD_FIELD_POINTER},
        {"deletionTimestamp", &hfd_schema_time,
         "DeletionTimestamp is RFC 3339 date and time at which this resource will be "
         "deleted. This field is set by the server when a graceful deletion is "
         "requested by the user, and is not directly settable by a client. The resource "
         "is expected to be deleted (no longer visible from resource lists, and not "
         "reachable by name) after the time in this field, once the finalizers list is "
         "empty. As long as the finalizers list contains items, deletion is blocked. "
         "Once the deletionTimestamp is set, this value may not be unset or be set "
         "further into the future, although it may be shortened or the resource may be "
         "deleted prior to this time. For example, a user may request that a pod is "
         "deleted in 30 seconds. The Kubelet will react by sending a graceful "
         "termination signal to the containers in the pod. After that 30 seconds, the "
         "Kubelet will send a hard termination signal (SIGKILL) to the container and "
         "after cleanup, remove the pod from the API. In the presence of network "
         "partitions, this object may still exist after this timestamp, until an "
         "administrator or automated process can determine the resource is fully "
         "terminated. If not set, graceful deletion of the object has not been "
         "requested.\n\nPopulated by the system when a graceful deletion is requested. "
         "Read-only. More info: "
         "https://git.k8s.io/community/contributors/devel/sig-architecture/"
         "api-conventions.md#metadata",
         .protobuf_tag = 9, .flags = HFD_FIELD_POINTER},
        {"finalizers", &hfd_schema_set_of_texts,
         "Must be empty before the object is deleted from the registry. Each entry is "
         "an identifier for the responsible component that will remove the entry from "
         "the list. If the deletionTimestamp of the object is non-nil, entries in this "
         "list can only be removed. Finalizers may be processed and removed in any "
         "order.  Order is NOT enforced because it introduces significant risk of stuck "
         "finalizers. finalizers is a shared field, any actor with permission can "
         "reorder it. If the finalizer list is processed in order, then this can lead "
         "to a situation in which the component responsible for the first finalizer in "
         "the list is waiting for a signal (field value, external system, or other) "
         "produced by a component responsible for a finalizer later in the list, "
         "resulting in a deadlock. Without enforced ordering finalizers are free to "
         "order amongst themselves and are not vulnerable to ordering changes in the "
         "list.",
         .protobuf_tag = 14, .flags = HFD_FIELD_MERGE},
        {"generateName", &hfd_schema_text,
         "GenerateName is an optional prefix, used by the server, to generate a unique "
         "name ONLY IF the Name field has not been provided. If this field is used, the "
         "name returned to the client will be different than the name passed. This "
         "value will also be combined with a unique suffix. The provided value has the "
         "same validation rules as the Name field, and may be truncated by the length "
         "of the suffix required to make the value unique on the server.\n\nIf this "
         "field is specified and the generated name exists, the server will return a "
         "409.\n\nApplied only if Name is not specified. More info: "
         "https://git.k8s.io/community/contributors/devel/sig-architecture/"
         "api-conventions.md#idempotency",
         .protobuf_tag = 2},
        {"generation", &hfd_schema_int64,
         "A sequence number representing a specific generation of the desired state. "
         "Populated by the system. Read-only.",
         .protobuf_tag = 7},
        {"labels", &hfd_schema_map_of_texts,
         "Map of string keys and values that can be used to organize and categorize "
         "(scope and select) objects. May match selectors of replication controllers "
         "and services. More info: "
         "https://kubernetes.io/docs/concepts/overview/working-with-objects/labels",
         .protobuf_tag = 11},
        {"managedFields", HFD_LIST_OF(&managed_fields_entry),
         "ManagedFields maps workflow-id and version to the set of fields that are "
         "managed by that workflow. This is mostly for internal housekeeping, and users "
         "typically shouldn't need to set or understand this field. A workflow can be "
         "the user's name, a controller's name, or the name of a specific apply path "
         "like \"ci-cd\". The set of fields is always in the version that the workflow "
         "used when modifying the object.",
         .protobuf_tag = 17},
        {"name", &hfd_schema_text,
         "Name must be unique within a namespace. Is required when creating resources, "
         "although some resources may allow a client to request the generation of an "
         "appropriate name automatically. Name is primarily intended for creation "
         "idempotence and configuration definition. Cannot be updated. More info: "
         "https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names",
         .protobuf_tag = 1},
        {"namespace", &hfd_schema_text,
         "Namespace defines the space within which each name must be unique. An empty "
         "namespace is equivalent to the \"default\" namespace, but \"default\" is the "
         "canonical representation. Not all objects are required to be scoped to a "
         "namespace - the value of this field for those objects will be empty.\n\nMust "
         "be a DNS_LABEL. Cannot be updated. More info: "
         "https://kubernetes.io/docs/concepts/overview/working-with-objects/namespaces",
         .protobuf_tag = 3},
        {"ownerReferences", HFD_LIST_OF(&owner, .list_type = HFD_LIST_MAP, .list_keys = by_uid),
         "List of objects depended by this object. If ALL objects in the list have been "
         "deleted, this object will be garbage collected. If this object is managed by "
         "a controller, then an entry in this list will point to this controller, with "
         "the controller field set to true. There cannot be more than one managing "
         "controller.",
         .merge_key = "uid", .protobuf_tag = 13, .flags = HFD_FIELD_MERGE},
        {"resourceVersion", &hfd_schema_text,
         "An opaque value that represents the internal version of this object that can "
         "be used by clients to determine when objects have changed. May be used for "
         "optimistic concurrency, change detection, and the watch operation on a "
         "resource or set of resources. Clients must treat these values as opaque and "
         "passed unmodified back to the server. They may only be valid for a particular "
         "resource or set of resources.\n\nPopulated by the system. Read-only. Value "
         "must be treated as opaque by clients and . More info: "
         "https://git.k8s.io/community/contributors/devel/sig-architecture/"
         "api-conventions.md#concurrency-control-and-consistency",
         .protobuf_tag = 6},
        {"selfLink", &hfd_schema_text,
         "Deprecated: selfLink is a legacy read-only field that is no longer populated "
         "by the system.",
         .protobuf_tag = 4},
        {"uid", HFD_NAMED_TEXT("io.k8s.apimachinery.pkg.types.UID"),
         "UID is the unique in time and space value for this object. It is typically "
         "generated by the server on successful creation of a resource and is not "
         "allowed to change on PUT operations.\n\nPopulated by the system. Read-only. "
         "More info: "
         "https://kubernetes.io/docs/concepts/overview/working-with-objects/names#uids",
         .protobuf_tag = 5},
};
const struct hfd_schema hfd_schema_object_meta =
        {HFD_STRUCT(HFD_META "ObjectMeta", meta_fields),
         .description =
                 "ObjectMeta is metadata that all persisted resources must have, which includes "
                 "all objects users must create."};

/* runtime.TypeMeta, which is in the envelope of a message in protobuf. The TypeMeta in the package
 * of ObjectMeta has these two numbers the other way round, and no message has it on the wire. */
static const struct hfd_schema_field type_meta_fields[] = {
        {"apiVersion", &hfd_schema_text, .protobuf_tag = 1},
        {"kind", &hfd_schema_text, .protobuf_tag = 2},
};
const struct hfd_schema hfd_schema_type_meta = {HFD_STRUCT(HFD_META "TypeMeta", type_meta_fields)};

/* ---- references ---- */

/* Atomic: a name from one manager and a namespace from another would refer to an object that
 * neither of them meant. */
static const struct hfd_schema_field reference_fields[] = {
        {"apiVersion", &hfd_schema_text, "The API version of the object.", .protobuf_tag = 5},
        {"fieldPath", &hfd_schema_text, "The part of the object that is meant.", .protobuf_tag = 7},
        {"kind", &hfd_schema_text, "The kind of the object.", .protobuf_tag = 1},
        {"name", &hfd_schema_text, "The name of the object.", .protobuf_tag = 3},
        {"namespace", &hfd_schema_text, "The namespace of the object.", .protobuf_tag = 2},
        {"resourceVersion", &hfd_schema_text, "The version of the object that is meant.",
         .protobuf_tag = 6},
        {"uid", HFD_NAMED_TEXT("io.k8s.apimachinery.pkg.types.UID"), "The uid of the object.",
         .protobuf_tag = 4},
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

/* The requirements are a list, not a map: a selector may have several requirements for one key.
 * The selector is atomic, because each further requirement narrows what it selects. */
static const struct hfd_schema_field term_fields[] = {
        {"key", &hfd_schema_text, "The key of the label.", .protobuf_tag = 1,
         .flags = HFD_FIELD_REQUIRED},
        {"operator", HFD_NAMED_TEXT(HFD_META "LabelSelectorOperator"),
         "In, NotIn, Exists or DoesNotExist.", .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
        {"values", &hfd_schema_list_of_texts, "The values for In and NotIn.", .protobuf_tag = 3},
};
const struct hfd_schema hfd_schema_label_requirement =
        {HFD_STRUCT(HFD_META "LabelSelectorRequirement", term_fields),
         .description = "One requirement of a label selector."};

static const struct hfd_schema_field selector_fields[] = {
        {"matchExpressions", HFD_LIST_OF(&hfd_schema_label_requirement),
         "Requirements, all of which must be met.", .protobuf_tag = 2},
        {"matchLabels", &hfd_schema_map_of_texts, "Labels that must have these values.",
         .protobuf_tag = 1},
};
const struct hfd_schema hfd_schema_label_selector =
        {HFD_STRUCT(HFD_META "LabelSelector", selector_fields), .atomic = true,
         .description = "Selects objects by their labels. An empty selector selects all."};

/* observedGeneration is no pointer in Go, so an absent one and 0 are equal; generations begin at 1.
 * message is required, but may be empty. */
static const struct hfd_schema_field condition_fields[] = {
        {"lastTransitionTime", &hfd_schema_time, "When the status last changed.", .protobuf_tag = 4,
         .flags = HFD_FIELD_REQUIRED},
        {"message", &hfd_schema_text, "Details for a human reader.", .protobuf_tag = 6,
         .flags = HFD_FIELD_REQUIRED},
        {"observedGeneration", &hfd_schema_int64,
         "The generation of the object that the condition is about.", .protobuf_tag = 3},
        {"reason", &hfd_schema_text, "Why the status last changed, in one word.", .protobuf_tag = 5,
         .flags = HFD_FIELD_REQUIRED},
        {"status", HFD_NAMED_TEXT(HFD_META "ConditionStatus"), "True, False or Unknown.",
         .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
        {"type", &hfd_schema_text, "The type of the condition, in CamelCase.", .protobuf_tag = 1,
         .flags = HFD_FIELD_REQUIRED},
};
const struct hfd_schema hfd_schema_condition = {HFD_STRUCT(HFD_META "Condition", condition_fields),
                                                .description =
                                                        "One aspect of the state of an object."};

/* ---- DeleteOptions ---- */

/* Pointers: a precondition that is absent does not count, but an empty text is a value that no
 * object has. */
static const struct hfd_schema_field precondition_fields[] = {
        {"resourceVersion", &hfd_schema_text, "The version that the object must have.",
         .protobuf_tag = 2, .flags = HFD_FIELD_POINTER},
        {"uid", HFD_NAMED_TEXT("io.k8s.apimachinery.pkg.types.UID"),
         "The uid that the object must have.", .protobuf_tag = 1, .flags = HFD_FIELD_POINTER},
};
const struct hfd_schema hfd_schema_preconditions =
        {HFD_STRUCT(HFD_META "Preconditions", precondition_fields),
         .description = "What must hold, or the delete is refused."};

/* gracePeriodSeconds is a pointer, because 0 means at once, and an absent one means the default of
 * the kind. orphanDependents is still read, for clients that are older than propagationPolicy. */
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
        {"propagationPolicy", HFD_NAMED_TEXT(HFD_META "DeletionPropagation"),
         "Orphan, Background or Foreground.", .protobuf_tag = 4, .flags = HFD_FIELD_POINTER},
};
const struct hfd_schema hfd_schema_delete_options = {HFD_STRUCT(HFD_META "DeleteOptions",
                                                                delete_options_fields),
                                                     .description = "How an object is deleted."};
