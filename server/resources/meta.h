/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * ObjectMeta as it comes in: whether it fits the request, and what the server fills in. What
 * its values must look like is in meta_validation.h. Pure, but for random numbers (uids, generated
 * names). Thread: owner of the object.
 *
 * A create calls accept, prepare_create and, for a generateName, generate_name; an update calls
 * accept and prepare_update.
 */
#include <stdbool.h>
#include <stdint.h>

#include "server/resources/resource.h"
#include "server/resources/response.h"

struct hf__json;

/*
 * Whether kind and apiVersion fit the resource, the types of metadata are right, and the names fit
 * the path: ns "" = no namespace, name "" = a create. object is a JSON object; its metadata exists
 * afterwards, with times in this server's form. False: response says why not (400, or 500 when
 * memory ran out).
 */
bool hfd_meta_accept(const struct hfd_resource *resource, const char *ns, const char *name,
                     struct hf__json *object, struct hfd_response *response);
/*
 * Of a create: sets namespace, uid and creationTimestamp (now_s, in seconds since 1970), and
 * removes what a client may not set. 0, -ENOMEM, or -EIO: no random numbers.
 */
int hfd_meta_prepare_create(const struct hfd_resource *resource, const char *ns,
                            struct hf__json *object, int64_t now_s);
/* Sets metadata.name to metadata.generateName and five random characters. 0, -ENOMEM or -EIO. */
int hfd_meta_generate_name(struct hf__json *object);
/*
 * Of an update: copies from old what the server alone sets and the client left out, and counts the
 * generation. Both objects have metadata. 0 or -ENOMEM.
 */
int hfd_meta_prepare_update(const struct hfd_resource *resource, struct hf__json *object,
                            const struct hf__json *old);
