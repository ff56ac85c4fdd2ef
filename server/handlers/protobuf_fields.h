/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The fields of the kinds in Kubernetes' protobuf form. Field numbers are those of the
 * generated.proto files of k8s.io/api and k8s.io/apimachinery; they never change. All tables are
 * static. Thread: any.
 */
#include "server/resources/resource.h"

/* The type of a field in protobuf, and in JSON. */
enum hfd_protobuf_type {
        HFD_PB_END,           /* marks the end of a table */
        HFD_PB_TEXT,          /* a string; "" becomes an absent member */
        HFD_PB_TEXT_OR_EMPTY, /* a string; "" becomes a member with the value "" */
        HFD_PB_INT,           /* a varint; a number */
        HFD_PB_BOOL,          /* a varint */
        HFD_PB_MESSAGE,       /* an object; an empty one becomes an absent member */
        HFD_PB_MESSAGES,      /* repeated: an array of objects */
        HFD_PB_TEXTS,         /* repeated: an array of strings */
        HFD_PB_MAP,           /* repeated entries: an object of strings */
        HFD_PB_MAP_BYTES,     /* the same; values are bytes, and become base64 */
        HFD_PB_TIME,          /* a message of seconds and nanoseconds: a Time */
        HFD_PB_MICROTIME      /* the same: a MicroTime */
};

struct hfd_protobuf_field {
        unsigned number;
        enum hfd_protobuf_type type;
        const char *name;                        /* in JSON */
        const struct hfd_protobuf_field *fields; /* for HFD_PB_MESSAGE and HFD_PB_MESSAGES */
};

/* The fields of the resource's kind. NULL: the kind has no protobuf form (Workspaces). */
const struct hfd_protobuf_field *hfd_protobuf_fields(const struct hfd_resource *resource);
/* The fields of runtime.TypeMeta. */
const struct hfd_protobuf_field *hfd_protobuf_fields_of_type_meta(void);
/* The fields of metav1.DeleteOptions. */
const struct hfd_protobuf_field *hfd_protobuf_fields_of_delete_options(void);
