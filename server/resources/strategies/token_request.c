/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The structural schema and the struct hfd_resource of TokenRequest, the kind of the body of
 * serviceaccounts/token. It is not stored, so it has no strategy.
 *
 * Each element of a table of fields has the field's name in JSON, the schema of the value, a
 * description for `kubectl explain`, the number in protobuf (protobuf_tag), and flags (schema.h).
 *
 * Invariants: names, types and numbers are those of k8s.io/api/authentication/v1 and never change.
 * Each table is sorted by name (strcmp), because look-ups bisect it.
 */
#include "server/resources/resource.h"
#include "server/resources/strategies/strategies.h"
#include "server/schema/common.h"

#define IDENTITY "io.k8s.api.authentication.v1."

static const struct hfd_schema_field object_fields[] = {
        {"apiVersion", &hfd_schema_text, "The API version of the object.", .protobuf_tag = 2},
        {"kind", &hfd_schema_text, "The kind of the object; only Secrets are served.",
         .protobuf_tag = 1},
        {"name", &hfd_schema_text, "The name of the object.", .protobuf_tag = 3},
        {"uid", HFD_NAMED_TEXT("io.k8s.apimachinery.pkg.types.UID"),
         "The uid that the object must have; empty means any.", .protobuf_tag = 4},
};
static const struct hfd_schema bound_object =
        {HFD_STRUCT(IDENTITY "BoundObjectReference", object_fields),
         .description = "The object with which the token becomes invalid."};

static const struct hfd_schema_field spec_fields[] = {
        {"audiences", &hfd_schema_list_of_texts,
         "For whom the token is; empty means for this server.", .protobuf_tag = 1,
         .flags = HFD_FIELD_REQUIRED},
        {"boundObjectRef", &bound_object, "The token is valid while this object exists.",
         .protobuf_tag = 3, .flags = HFD_FIELD_POINTER},
        {"expirationSeconds", &hfd_schema_int64, "How long the token is valid; 3600 by default.",
         .protobuf_tag = 4, .flags = HFD_FIELD_POINTER},
};
static const struct hfd_schema spec_schema = {HFD_STRUCT(IDENTITY "TokenRequestSpec", spec_fields),
                                              .description = "The token that is wanted."};

static const struct hfd_schema_field status_fields[] = {
        {"expirationTimestamp", &hfd_schema_time, "When the token becomes invalid.",
         .protobuf_tag = 2, .flags = HFD_FIELD_REQUIRED},
        {"token", &hfd_schema_text, "The token.", .protobuf_tag = 1, .flags = HFD_FIELD_REQUIRED},
};
static const struct hfd_schema status_schema = {HFD_STRUCT(IDENTITY "TokenRequestStatus",
                                                           status_fields),
                                                .description = "The token that was issued."};

static const struct hfd_schema_field fields[] = {
        HFD_FIELD_API_VERSION,
        HFD_FIELD_KIND,
        HFD_FIELD_METADATA_AS(
                "metadata is the standard object's metadata. More info: " HFD_CONVENTIONS
                "#metadata"),
        {"spec", &spec_schema, "The token that is wanted.", .protobuf_tag = 2,
         .flags = HFD_FIELD_REQUIRED},
        {"status", &status_schema, "The token, which the server writes.", .protobuf_tag = 3},
};
static const struct hfd_schema schema =
        {HFD_STRUCT(IDENTITY "TokenRequest", fields),
         .description = "TokenRequest asks for a service account's token."};

/* Not in the table of resources (resource_table.c), because the kind has no path of its own. */
static const struct hfd_resource row = {.group = "authentication.k8s.io",
                                        .version = "v1",
                                        .plural = "tokenrequests",
                                        .singular = "tokenrequest",
                                        .kind = "TokenRequest",
                                        .namespaced = true,
                                        .is_review = true,
                                        .schema = &schema};

const struct hfd_resource *hfd_resource_token_request(void) { return &row; }
