/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The schemas of the parts that many kinds have, and the fields that every kind has. Names, numbers
 * and types are those of k8s.io/api and k8s.io/apimachinery; they never change. Static and
 * immutable.
 */
#include "server/schema/schema.h"

#define HFD_CORE "io.k8s.api.core.v1."
#define HFD_META "io.k8s.apimachinery.pkg.apis.meta.v1."

extern const struct hfd_schema hfd_schema_object_meta, hfd_schema_object_reference,
        hfd_schema_local_object_reference, hfd_schema_label_selector, hfd_schema_condition,
        hfd_schema_preconditions, hfd_schema_delete_options, hfd_schema_type_meta;

/* Entries of the table of a kind's fields. In protobuf, apiVersion and kind are in the envelope. */
#define HFD_FIELD_API_VERSION                                                                      \
        {                                                                                          \
                .name = "apiVersion", .schema = &hfd_schema_text,                                  \
                .description = "The version of the schema of this object: group/version."          \
        }
#define HFD_FIELD_KIND                                                                             \
        {                                                                                          \
                .name = "kind", .schema = &hfd_schema_text,                                        \
                .description = "The kind of the object, in CamelCase. It cannot be changed."       \
        }
#define HFD_FIELD_METADATA                                                                         \
        {                                                                                          \
                .name = "metadata", .schema = &hfd_schema_object_meta, .protobuf_tag = 1,          \
                .description = "The metadata that all objects have."                               \
        }
