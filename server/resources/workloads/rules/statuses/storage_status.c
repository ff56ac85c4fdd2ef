/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of the statuses of PersistentVolumeClaims and VolumeAttachments.
 *
 * Invariants: the texts of the causes and their order are those of kube-apiserver, because clients
 * show them and tests compare them. A write that does not change the status is not checked
 * (hfd_status_is_kept).
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "server/resources/strategies/pod/rules/pod_validation.h"
#include "server/resources/validation/meta_validation.h"
#include "server/resources/validation/names.h"
#include "server/resources/validation/resource_names.h"
#include "server/resources/workloads/workloads.h"

#define METADATA_MAX (256 * 1024) /* bytes of all keys and values of attachmentMetadata */
#define MESSAGE_MAX  1024         /* bytes of the message of an error */

/* ---- claims ---- */

/* Adds a cause unless a claim may have a resource of this name: storage, or one that has the prefix
 * of a vendor. Returns whether it may. */
static bool require_key(const char *name, const char *field, struct hfd_causes *causes) {
        bool is_native = !strchr(name, '/') || strstr(name, "kubernetes.io/");

        if (!hfd_is_qualified_name(name))
                hfd_qualified_name_validate(name, field, causes);
        else if (is_native && strcmp(name, "storage") != 0)
                hfd_cause_unsupported_text(causes, field, name, "\"storage\"");
        else
                return true;
        return false;
}

/* "status.capacity[storage]". A long name is cut. */
static const char *keyed_path(char path[HFD_FIELD_PATH_MAX], const char *field, const char *key) {
        (void)snprintf(path, HFD_FIELD_PATH_MAX, "%s[%s]", field, key);
        return path;
}

void hfd_claim_validate_status(const struct hf__json *object, const struct hf__json *old,
                               struct hfd_causes *causes) {
        static const char *const resizes[] = {"ControllerResizeInProgress",
                                              "ControllerResizeInfeasible", "NodeResizePending",
                                              "NodeResizeInProgress", "NodeResizeInfeasible"};
        static const char of_resizes[] = "status.allocatedResourceStatuses",
                          of_allocated[] = "status.allocatedResources";
        char path[HFD_FIELD_PATH_MAX];

        if (hfd_status_is_kept(&hfd_persistent_volume_claim_schema, object, old, causes))
                return;
        for (const struct hf__json *m = hf__json_first(hf__json_path(object, "status.capacity")); m;
             m = hf__json_next(m))
                (void)hfd_amount_validate(m, keyed_path(path, "status.capacity", hf__json_key(m)),
                                          causes);
        for (const struct hf__json *m = hf__json_first(hf__json_path(object, of_resizes)); m;
             m = hf__json_next(m)) {
                size_t i = 0;
                (void)require_key(hf__json_key(m), of_resizes, causes);
                while (i < 5 &&
                       !(hf__json_is_string(m) && strcmp(hf__json_text(m), resizes[i]) == 0))
                        i++;
                /* kube-apiserver shows the key, not the value that it does not know. */
                if (i == 5)
                        hfd_cause_unsupported_text(causes, of_resizes, hf__json_key(m),
                                                   "\"ControllerResizeInProgress\", "
                                                   "\"ControllerResizeInfeasible\", "
                                                   "\"NodeResizeInProgress\", "
                                                   "\"NodeResizeInfeasible\", "
                                                   "\"NodeResizePending\"");
        }
        for (const struct hf__json *m = hf__json_first(hf__json_path(object, of_allocated)); m;
             m = hf__json_next(m))
                if (require_key(hf__json_key(m), of_allocated, causes))
                        (void)hfd_amount_validate(m,
                                                  keyed_path(path, of_allocated, hf__json_key(m)),
                                                  causes);
}

/* ---- attachments ---- */

/* error: why a volume could not be attached or detached. Absent, it is valid. */
static void validate_error(const struct hf__json *error, const char *field,
                           struct hfd_causes *causes) {
        char path[HFD_FIELD_PATH_MAX];

        if (strlen(hfd_text_of(error, "message")) > MESSAGE_MAX)
                /* kube-apiserver names the limit of the metadata here. */
                hfd_cause_too_long(causes, hfd_field_path(path, field, "message"),
                                   "may not be more than 262144 bytes");
        hfd_require_range(error, field, "errorCode", 0, INT64_MAX,
                          "must be between 0 and 2147483647, inclusive", causes);
}

void hfd_volume_attachment_validate_status(const struct hf__json *object,
                                           const struct hf__json *old, struct hfd_causes *causes) {
        static const char field[] = "status.attachmentMetadata";
        size_t n = 0;

        if (hfd_status_is_kept(&hfd_volume_attachment_schema, object, old, causes))
                return;
        for (const struct hf__json *m = hf__json_first(hf__json_path(object, field)); m;
             m = hf__json_next(m))
                n += strlen(hf__json_key(m)) +
                     (hf__json_is_string(m) ? strlen(hf__json_text(m)) : 0);
        if (n > METADATA_MAX)
                hfd_cause_too_long(causes, field, "may not be more than 262144 bytes");
        validate_error(hf__json_path(object, "status.attachError"), "status.attachError", causes);
        validate_error(hf__json_path(object, "status.detachError"), "status.detachError", causes);
}
