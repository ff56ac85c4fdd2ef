/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The ObjectMeta of a received object: checks that it fits the request, and sets the fields that
 * only the server sets. validation/meta_validation.h checks the values. Pure except for random
 * numbers (uids, generated names). Thread: owner of the object.
 *
 * A create calls hfd_meta_accept_type, hfd_meta_accept, hfd_meta_prepare_create and, if the object
 * has a generateName and no name, hfd_meta_generate_name. An update calls hfd_meta_accept_type,
 * hfd_meta_accept, hfd_meta_prepare_update and hfd_meta_set_generation; that of a subresource may
 * leave out one of the last two.
 */
#include <stdbool.h>
#include <stdint.h>

#include "server/resources/resource.h"
#include "server/resources/response.h"

struct hf__json;

/* Checks that kind and apiVersion match the resource. A value that is absent, "" or not a string
 * passes. False: response is the error (400). */
bool hfd_meta_accept_type(const struct hfd_resource *resource, const struct hf__json *object,
                          struct hfd_response *response);
/*
 * Checks that the object's namespace and name match those of the path. ns "" = no namespace; name
 * "" = a create, for which any name passes. A namespace in the object that is absent or "" passes,
 * too; if the resource is cluster-scoped, any namespace is removed. object has the form of its
 * schema (schema/decode.h). On success its metadata exists. False: response is the error (400, or
 * 500 if memory ran out).
 */
bool hfd_meta_accept(const struct hfd_resource *resource, const char *ns, const char *name,
                     struct hf__json *object, struct hfd_response *response);
/*
 * For a create: sets namespace, uid and creationTimestamp (now_s, in seconds since 1970), and
 * removes what a client may not set. 0, -ENOMEM, or -EIO: there are no random numbers.
 */
int hfd_meta_prepare_create(const struct hfd_resource *resource, const char *ns,
                            struct hf__json *object, int64_t now_s);
/* A random UUID (RFC 4122, version 4). 0 or -EIO. */
#define HFD_UID_MAX 40 /* a UUID has 36 characters and a NUL */
int hfd_meta_make_uid(char text[HFD_UID_MAX]);
/* A name that begins with base, which is cut to 58 bytes, and ends with five random characters. 0
 * or -EIO. */
#define HFD_GENERATED_NAME_MAX 64 /* bytes, with the NUL */
int hfd_meta_make_name(const char *base, char ret_name[HFD_GENERATED_NAME_MAX]);
/* Sets metadata.name to metadata.generateName, cut to 58 bytes, and five random characters. 0,
 * -ENOMEM or -EIO. */
int hfd_meta_generate_name(struct hf__json *object);
/*
 * For an update: takes the fields that the server sets from old, and removes those that are not
 * stored. It takes creationTimestamp and deletionTimestamp whatever the client has sent, and the
 * other fields only if the client has left them out or sent null. A field that old does not have
 * stays as it is; the validation refuses it. It touches neither managedFields nor the generation.
 * Both objects must have metadata. 0 or -ENOMEM.
 */
int hfd_meta_prepare_update(const struct hfd_resource *resource, struct hf__json *object,
                            const struct hf__json *old);
/*
 * For an update, after the kind's defaults are set: sets the generation to that of old, or removes
 * it if old has none. If the kind counts generations and a counted part has changed, the generation
 * is one more than that of old (1 if old has none). of_status: the client writes status, so a
 * change of metadata does not count. The client's value is ignored. 0 or -ENOMEM.
 */
int hfd_meta_set_generation(const struct hfd_resource *resource, struct hf__json *object,
                            const struct hf__json *old, bool of_status);
