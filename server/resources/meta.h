/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The ObjectMeta of a received object: checks that it fits the request, and sets the fields that
 * only the server sets. validation/meta_validation.h checks the values. Pure except for random
 * numbers (uids, generated names). Thread: owner of the object.
 *
 * A create calls hfd_meta_accept, hfd_meta_prepare_create and, if the object has a generateName and
 * no name, hfd_meta_generate_name. An update calls hfd_meta_accept, hfd_meta_prepare_update and
 * hfd_meta_set_generation.
 */
#include <stdbool.h>
#include <stdint.h>

#include "server/resources/resource.h"
#include "server/resources/response.h"

struct hf__json;

/* Checks that kind and apiVersion, if they are strings, match the resource. False: response is the
 * error (400). */
bool hfd_meta_accept_type(const struct hfd_resource *resource, const struct hf__json *object,
                          struct hfd_response *response);
/*
 * Checks that the names match the path. ns "" = no namespace; name "" = a create. object has the
 * form of its schema (schema/decode.h). On success its metadata exists. False: response is the
 * error (400, or 500 if memory ran out).
 */
bool hfd_meta_accept(const struct hfd_resource *resource, const char *ns, const char *name,
                     struct hf__json *object, struct hfd_response *response);
/*
 * For a create: sets namespace, uid and creationTimestamp (now_s, in seconds since 1970), and
 * removes what a client may not set. 0, -ENOMEM, or -EIO: no random numbers.
 */
int hfd_meta_prepare_create(const struct hfd_resource *resource, const char *ns,
                            struct hf__json *object, int64_t now_s);
/* A random UUID (RFC 4122, version 4). 0 or -EIO. */
#define HFD_UID_MAX 40 /* a UUID has 36 characters and a NUL */
int hfd_meta_make_uid(char text[HFD_UID_MAX]);
/* Sets metadata.name to metadata.generateName, cut to 58 bytes, and five random characters. 0,
 * -ENOMEM or -EIO. */
int hfd_meta_generate_name(struct hf__json *object);
/*
 * For an update: copies the server-set fields that the client left out from old, and removes those
 * that are not stored. It touches neither managedFields nor the generation. Both objects must have
 * metadata. 0 or -ENOMEM.
 */
int hfd_meta_prepare_update(const struct hfd_resource *resource, struct hf__json *object,
                            const struct hf__json *old);
/*
 * For an update, after the kind's defaults are set: sets the generation to that of old. If the kind
 * counts generations, adds one if a counted part has changed. The client's value is ignored. 0 or
 * -ENOMEM.
 */
int hfd_meta_set_generation(const struct hfd_resource *resource, struct hf__json *object,
                            const struct hf__json *old);
