/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The schemas of bodies that are not objects. The encoder of protobuf responses and OpenAPI read
 * them.
 *
 * Invariants: each table is sorted by name, because fields are found by bisection. A field never
 * changes its protobuf number: old clients would read another field. The fields of a WatchEvent
 * have no numbers, because resources/objects/protobuf_response.c writes that message itself.
 */
#include "server/schema/bodies.h"

#include "server/schema/common.h"

/* ---- lists ---- */

static const struct hfd_schema_field list_meta_fields[] = {
        {"continue", &hfd_schema_text,
         "The list has more items: a request with this token returns the next ones.",
         .protobuf_tag = 3},
        {"remainingItemCount", &hfd_schema_int64,
         "How many items follow; absent if nothing follows, or if the request had a selector.",
         .protobuf_tag = 4, .flags = HFD_FIELD_POINTER},
        {"resourceVersion", &hfd_schema_text,
         "The state that the list shows, from which a watch can go on.", .protobuf_tag = 2},
        {"selfLink", &hfd_schema_text, "Deprecated; it is never set.", .protobuf_tag = 1},
};
const struct hfd_schema hfd_schema_list_meta = {HFD_STRUCT(HFD_META "ListMeta", list_meta_fields),
                                                .description =
                                                        "The metadata of a list, or of a Status."};

/* ---- Status ---- */

static const struct hfd_schema_field cause_fields[] = {
        {"field", &hfd_schema_text, "The field at fault, such as spec.items[0].name.",
         .protobuf_tag = 3},
        {"message", &hfd_schema_text, "What is wrong, for a human reader.", .protobuf_tag = 2},
        {"reason", &hfd_schema_text, "What is wrong, in one word.", .protobuf_tag = 1},
};
static const struct hfd_schema cause = {HFD_STRUCT(HFD_META "StatusCause", cause_fields),
                                        .description = "One of several causes of a failure."};

static const struct hfd_schema_field details_fields[] = {
        {"causes", HFD_LIST_OF(&cause), "The causes of the failure.", .protobuf_tag = 4},
        {"group", &hfd_schema_text, "The group of the resource.", .protobuf_tag = 2},
        {"kind", &hfd_schema_text, "The kind or the plural of the resource.", .protobuf_tag = 3},
        {"name", &hfd_schema_text, "The name of the object.", .protobuf_tag = 1},
        {"retryAfterSeconds", &hfd_schema_int32,
         "Seconds until the request may be sent again, or until another one should be.",
         .protobuf_tag = 5},
        {"uid", &hfd_schema_text, "The uid of the object.", .protobuf_tag = 6},
};
static const struct hfd_schema details = {HFD_STRUCT(HFD_META "StatusDetails", details_fields),
                                          .description = "What a Status is about."};

static const struct hfd_schema_field status_fields[] = {
        HFD_FIELD_API_VERSION,
        {"code", &hfd_schema_int32, "The code of the HTTP response.", .protobuf_tag = 6},
        {"details", &details, "What the reason is about.", .protobuf_tag = 5,
         .flags = HFD_FIELD_POINTER},
        HFD_FIELD_KIND,
        {"message", &hfd_schema_text, "What has happened, for a human reader.", .protobuf_tag = 3},
        {"metadata", &hfd_schema_list_meta,
         "Standard list metadata. More info: " HFD_CONVENTIONS "#types-kinds", .protobuf_tag = 1},
        {"reason", &hfd_schema_text, "Why the request failed, in one word.", .protobuf_tag = 4},
        {"status", &hfd_schema_text, "Success or Failure.", .protobuf_tag = 2},
};
const struct hfd_schema hfd_schema_status =
        {HFD_STRUCT(HFD_META "Status", status_fields),
         .description = "The response to a request that returns no object."};

/* ---- watches and patches ---- */

static const struct hfd_schema raw_extension =
        {.type = HFD_SCHEMA_ANY,
         .only_objects = true,
         .definition = "io.k8s.apimachinery.pkg.runtime.RawExtension",
         .description = "An object of any kind."};

static const struct hfd_schema_field event_fields[] = {
        {"object", &raw_extension,
         "The object after the change, before its removal (DELETED), or with nothing but a "
         "resourceVersion (BOOKMARK); a Status after an ERROR.",
         .flags = HFD_FIELD_REQUIRED},
        {"type", &hfd_schema_text, "ADDED, MODIFIED, DELETED, BOOKMARK or ERROR.",
         .flags = HFD_FIELD_REQUIRED},
};
const struct hfd_schema hfd_schema_watch_event = {HFD_STRUCT(HFD_META "WatchEvent", event_fields),
                                                  .description = "One event of a watch."};

const struct hfd_schema hfd_schema_patch =
        {.type = HFD_SCHEMA_ANY,
         .only_objects = true,
         .definition = HFD_META "Patch",
         .description = "The body of a PATCH; its content type says of which form it is."};
