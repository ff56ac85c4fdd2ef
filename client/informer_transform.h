/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Lets an informer keep only a part of each object, which the informer's owner chooses. For
 * collections of large objects of which more than the metadata is needed. Such an object must not
 * be written back to the server, because its other members are missing.
 */
#include <stddef.h>

struct hf__buf;
struct hf_informer;

/*
 * Reduces a JSON object of n bytes. apiVersion, kind, and the name, namespace, uid and
 * resourceVersion in the metadata must remain. The informer gets a reference to *ret_object. Runs
 * without a lock, on the informer's thread for a list and on the client's for an event, so several
 * calls may run at the same time. 0, -ENOMEM, or -EPROTO: the text is not such an object. After
 * either error the informer lists again.
 */
typedef int (*hf__informer_transform_fn)(const char *object, size_t n, struct hf__buf **ret_object);

/* Sets the transform, also in place of the one of metadata_only. Call it before hf_informer_start.
 * Thread: the owner's. */
void hf__informer_set_transform(struct hf_informer *informer, hf__informer_transform_fn transform);
