/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The request that expressions decide about. Everything is borrowed. Thread: owner only. */
struct hf__json;
struct hfd_admission_attributes;
struct hfd_expression_objects;
struct hfd_resource;

/* The values of the variables. NULL JSON is the value null. */
struct hfd_expression_input {
        const struct hfd_admission_attributes *of;
        /* The row of the resource in the version that the rules have matched, and the row that has
         * the kind of the objects: the same one, unless a subresource has another kind. */
        const struct hfd_resource *resource, *kind;
        const struct hf__json *object, *old, *options, *namespace_object, *params;
        /* The values of object and old, shared with other runs. NULL: each run makes its own. */
        struct hfd_expression_objects *objects;
};
