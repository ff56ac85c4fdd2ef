/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first step of the deletion of a CustomResourceDefinition. The finalizer keeps it until a
 * controller has deleted its objects, and the condition says so. Type, reason and message are those
 * of kube-apiserver, which clients read.
 */
#include <errno.h>

#include "base/json.h"
#include "server/resources/strategies/strategies.h"

#define FINALIZER "customresourcecleanup.apiextensions.k8s.io"

static int add_finalizer(struct hf__json *object) {
        struct hf__json *list = hf__json_path(object, "metadata.finalizers");

        if (hf__json_has_element(list, FINALIZER))
                return 0;
        if (!hf__json_is_array(list)) {
                int r = hf__json_set(object, "metadata.finalizers", hf__json_array());
                if (r != 0)
                        return r;
                list = hf__json_path(object, "metadata.finalizers");
        }
        return hf__json_append_string(list, FINALIZER);
}

int hfd_definition_begin_deletion(struct hf__json *object, const char *now) {
        struct hf__json *condition;
        int r = add_finalizer(object);

        if (r == 0)
                r = hf__json_find_or_append(object, "status.conditions", "type", "Terminating",
                                            &condition);
        if (r != 0)
                return r;
        if (!hf__json_has_text(condition, "status", "True"))
                r = hf__json_put_string(condition, "lastTransitionTime", now);
        if (r == 0)
                r = hf__json_put_string(condition, "type", "Terminating");
        if (r == 0)
                r = hf__json_put_string(condition, "status", "True");
        if (r == 0)
                r = hf__json_put_string(condition, "reason", "InstanceDeletionPending");
        return r == 0 ? hf__json_put_string(condition, "message",
                                            "CustomResourceDefinition marked for deletion; "
                                            "CustomResource deletion will begin soon")
                      : r;
}
