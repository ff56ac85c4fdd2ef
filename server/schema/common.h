/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The schemas of the parts that many kinds have, of DeleteOptions and of the TypeMeta in the
 * envelope of protobuf, and the fields that every kind has. Names, numbers and types are those of
 * k8s.io/api and k8s.io/apimachinery; they never change. Static and immutable.
 */
#include "server/schema/schema.h"

#define HFD_CORE "io.k8s.api.core.v1."
#define HFD_META "io.k8s.apimachinery.pkg.apis.meta.v1."

extern const struct hfd_schema hfd_schema_object_meta, hfd_schema_object_reference,
        hfd_schema_local_object_reference, hfd_schema_label_selector, hfd_schema_label_requirement,
        hfd_schema_condition, hfd_schema_preconditions, hfd_schema_delete_options,
        hfd_schema_type_meta;

/*
 * Entries of the table of a kind's fields. In protobuf, apiVersion and kind are in the envelope.
 * Programs read these descriptions, so they have Kubernetes' words; a few kinds describe metadata
 * in other words.
 */
#define HFD_FIELD_API_VERSION                                                                      \
        {                                                                                          \
                .name = "apiVersion", .schema = &hfd_schema_text,                                  \
                .description = "APIVersion defines the versioned schema of this representation "   \
                               "of an object. "                                                    \
                               "Servers should convert recognized schemas to the latest internal " \
                               "value, and "                                                       \
                               "may reject unrecognized values. More info: "                       \
                               "https://git.k8s.io/community/contributors/devel/sig-architecture/" \
                               "api-conventions.md#resources"                                      \
        }
#define HFD_FIELD_KIND                                                                             \
        {                                                                                          \
                .name = "kind", .schema = &hfd_schema_text,                                        \
                .description = "Kind is a string value representing the REST resource this "       \
                               "object represents. "                                               \
                               "Servers may infer this from the endpoint the client submits "      \
                               "requests to. "                                                     \
                               "Cannot be updated. In CamelCase. More info: "                      \
                               "https://git.k8s.io/community/contributors/devel/sig-architecture/" \
                               "api-conventions.md#types-kinds"                                    \
        }
#define HFD_CONVENTIONS                                                                            \
        "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md"
#define HFD_FIELD_METADATA_AS(text)                                                                \
        {                                                                                          \
                .name = "metadata", .schema = &hfd_schema_object_meta, .protobuf_tag = 1,          \
                .description = text                                                                \
        }
#define HFD_STANDARD_METADATA "Standard object's metadata. More info: " HFD_CONVENTIONS "#metadata"
#define HFD_FIELD_METADATA    HFD_FIELD_METADATA_AS(HFD_STANDARD_METADATA)
