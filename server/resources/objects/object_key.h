/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The storage key of an object: PREFIX/STORAGE/NAMESPACE/NAME, or PREFIX/STORAGE/NAME for a
 * resource without namespaces. STORAGE is hfd_resource.storage. The part after STORAGE is the path
 * of the object. Pure, except that hfd_object_key_parse may give a custom kind a slot in its table.
 * Thread: any.
 */
#include <holdfast/fence.h> /* HF_NAME_MAX */

#include "server/resources/resource.h"
#include "server/storage/keys.h"

struct hfd_custom_table;

#define HFD_PATH_MAX (2 * HF_NAME_MAX + 2) /* "namespace/name" and a NUL */

/* A range of paths: those that begin with prefix ("" = all), or only the path that equals it. */
struct hfd_scope {
        char prefix[HFD_PATH_MAX];
        bool exact;
};

/* The path of an object: "ns/name", or "name" if the resource has no namespaces. ns and name have
 * at most HF_NAME_MAX bytes (asserted). */
void hfd_object_path(const struct hfd_resource *resource, const char *ns, const char *name,
                     char path[HFD_PATH_MAX]);

/*
 * Sets the smallest scope that contains all objects with this namespace ("" = any) and this name
 * (NULL or "" = any). ns has at most HF_NAME_MAX bytes; the name may have any length. The scope
 * also contains objects with other names if the namespace is not given but needed for the path, or
 * if the name is longer than HF_NAME_MAX.
 */
void hfd_object_scope(const struct hfd_resource *resource, const char *ns, const char *name,
                      struct hfd_scope *ret_scope);

/*
 * The key of the object at path, below the store's prefix. An empty path gives the prefix of all
 * keys of the resource. The resource has a storage, so it must not be a review (is_review). 0, or
 * HF_E_TOO_LARGE.
 */
int hfd_object_key(const char *prefix, const struct hfd_resource *resource, const char *path,
                   char key[HFD_KEY_MAX]);

/*
 * The reverse: finds the resource and the path of a key. *ret_path points into key. The result for
 * a custom resource is the permanent row of its slot (custom/custom_table.h), whether its
 * definition is known or not. table NULL = there are no custom resources. NULL: no resource has
 * such keys, or all slots of the table are in use; or, if *ret_path is NULL, memory ran out.
 */
const struct hfd_resource *hfd_object_key_parse(const char *prefix, struct hfd_custom_table *table,
                                                const char *key, const char **ret_path);

/* The parts of a custom resource's key. */
struct hfd_custom_key {
        char group[HF_NAME_MAX + 1], plural[HF_NAME_MAX + 1];
        const char *path; /* points into the key */
};
/*
 * Splits a key PREFIX/GROUP/PLURAL/[NAMESPACE/]NAME whose group has a dot. False: it has another
 * form. Call it for keys of which hfd_object_key_parse knows no resource: the keys of some built-in
 * resources have this form, too.
 */
bool hfd_object_key_custom(const char *prefix, const char *key, struct hfd_custom_key *ret_custom);
