/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* ObjectMeta: what the server fills in, what may not change, and what names and labels may look
 * like. Pure but for uids. */
#include "server/resources/resource.h"
#include "server/resources/response.h"

/* kind and apiVersion fit the resource, names fit the path: namespace ns ("" = none), object name
 * ("" = a create). False: response is the 400. object's metadata exists afterwards. */
bool hfd_meta_accept(const struct hfd_resource *resource, const char *ns, const char *name,
                     struct hf__json *object, struct hfd_response *response);
/* Fills in for a new object: namespace, uid, creationTimestamp; removes what a client may not set.
 * 0 or -ENOMEM. */
int hfd_meta_prepare_create(const struct hfd_resource *resource, const char *ns,
                            struct hf__json *object, int64_t now_s);
/* Gives object a name out of its generateName. 0 or -errno. */
int hfd_meta_generate_name(struct hf__json *object);
/* Carries over from old what the client left out, and counts the generation. 0 or -ENOMEM. */
int hfd_meta_prepare_update(const struct hfd_resource *resource, struct hf__json *object,
                            const struct hf__json *old);
void hfd_meta_validate(const struct hfd_resource *resource, const struct hf__json *object,
                       const struct hf__json *old, struct hfd_causes *causes);

bool hfd_is_dns_label(const char *text);
bool hfd_is_dns_subdomain(const char *text);
bool hfd_is_config_key(const char *key); /* of a configmap's or a secret's data */
bool hfd_is_label_value(const char *text);
bool hfd_is_qualified_name(const char *text); /* of a label, an annotation, a finalizer */
/* Printed as Go's %q nearly: for the value in a cause. */
void hfd_quote(const char *text, char *out, size_t max_out);
void hfd_quote_list(const struct hf__json *list, char *out,
                    size_t max_out); /* []string{"a", "b"}; a long one is cut */

/* ---- of the strategies ---- */

/* A part that is absent, null (it is removed) or an object, an array. False: reason says that it is
 * something else. */
bool hfd_part_is_object(struct hf__json *object, const char *key, const char *kind, char *reason,
                        size_t max_reason);
bool hfd_part_is_array(struct hf__json *object, const char *key, bool of_objects, const char *kind,
                       char *reason, size_t max_reason);
/* data and its like: an object of strings, under keys that could be file names. */
bool hfd_part_is_map(struct hf__json *object, const char *key, const char *kind, char *reason,
                     size_t max_reason);
void hfd_validate_data_keys(const struct hf__json *object, const char *key,
                            struct hfd_causes *causes);
/* What `immutable` forbids of an update. */
void hfd_validate_immutable(const struct hf__json *object, const struct hf__json *old,
                            const char *const *parts, size_t n_parts, struct hfd_causes *causes);
