/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prepares the ObjectMeta of received objects. Two invariants:
 *
 *  - A client never sets the fields that belong to the server (uid, creationTimestamp,
 *    deletionTimestamp, generation, ...). A create removes or replaces them. An update computes the
 *    generation, and removes what is not stored. It copies creationTimestamp and deletionTimestamp
 *    from the stored object if that has them, and the other fields if the client has left them out.
 *    Where nothing is copied, the client's value stays, and validation refuses it unless it is the
 *    stored one (validation/meta_validation.c).
 *  - The checks stop at the first failure, and clients parse its text. So neither the order of the
 *    checks nor the texts may change.
 */
#include "server/resources/meta.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/json.h"
#include "base/time_format.h"
#include "server/schema/equal.h"

#define N_RANDOM 5 /* characters appended to a generateName */
#define GENERATE_NAME_MAX                                                                          \
        58 /* bytes kept of a generateName, so that the name fits in a DNS label (63) */

/* ---- whether the object fits the request ---- */

static bool is_absent(const struct hf__json *value) { return !value || hf__json_is_null(value); }

bool hfd_meta_accept_type(const struct hfd_resource *resource, const struct hf__json *object,
                          struct hfd_response *response) {
        const char *kind = hf__json_string(object, "kind"),
                   *version = hf__json_string(object, "apiVersion");
        char expected[HFD_API_VERSION_MAX];

        hfd_resource_api_version(resource, expected);
        if (version && *version && strcmp(version, expected) != 0) {
                hfd_response_bad_request(response,
                                         "the API version in the data (%.200s) does not match the "
                                         "expected API version (%s)",
                                         version, expected);
                return false;
        }
        if (kind && *kind && strcmp(kind, resource->kind) != 0) {
                hfd_response_bad_request(response,
                                         "%.200s in version \"%s\" cannot be handled as a %s: the "
                                         "kind in the data does not match",
                                         kind, resource->version, resource->kind);
                return false;
        }
        return true;
}

/* Whether objects of the kind are created for a pod that the path names. In Kubernetes the storage
 * of these kinds compares the names, and has words of its own. */
static bool is_for_pod(const struct hfd_resource *resource) {
        return (strcmp(resource->kind, "Binding") == 0 && !*resource->group) ||
               (strcmp(resource->kind, "Eviction") == 0 && strcmp(resource->group, "policy") == 0);
}

/*
 * Checks that namespace and name in the object match the path. If the path has no name (a create),
 * every name is accepted.
 */
static bool accept_names(const struct hfd_resource *resource, const char *path_ns,
                         const char *path_name, struct hf__json *object,
                         struct hfd_response *response) {
        const char *ns = hf__json_string(object, "metadata.namespace"),
                   *name = hf__json_string(object, "metadata.name");

        if (ns && !resource->namespaced) { /* as in Kubernetes, it has no meaning */
                hf__json_drop(hf__json_get(object, "metadata"), "namespace");
        } else if (ns && *ns && strcmp(ns, path_ns) != 0) {
                hfd_response_bad_request(response, "the namespace of the provided object does not "
                                                   "match the namespace sent on the request");
                return false;
        }
        if (!*path_name || (name && strcmp(name, path_name) == 0))
                return true;
        if (is_for_pod(resource))
                hfd_response_bad_request(response, "name in URL does not match name in %s object",
                                         resource->kind);
        else if (!name || !*name)
                hfd_response_bad_request(response,
                                         "the name of the object (%s based on URL) was "
                                         "undeterminable: name must be provided",
                                         path_name);
        else
                hfd_response_bad_request(response,
                                         "the name of the object (%.253s) does not match the name "
                                         "on the URL (%s)",
                                         name, path_name);
        return false;
}

bool hfd_meta_accept(const struct hfd_resource *resource, const char *ns, const char *name,
                     struct hf__json *object, struct hfd_response *response) {
        assert(hf__json_is_object(object));
        if (is_absent(hf__json_get(object, "metadata")) &&
            hf__json_set(object, "metadata", hf__json_object()) != 0) {
                hfd_response_no_memory(response);
                return false;
        }
        return accept_names(resource, ns, name, object, response);
}

/* ---- members that the server fills in ---- */

int hfd_meta_make_uid(char text[HFD_UID_MAX]) {
        unsigned char b[16];

        if (getrandom(b, sizeof b, 0) != (ssize_t)sizeof b)
                return -EIO;
        /* RFC 4122: four bits say version 4, a random UUID, and two bits the variant. */
        b[6] = (unsigned char)((b[6] & 0x0f) | 0x40);
        b[8] = (unsigned char)((b[8] & 0x3f) | 0x80);
        (void)snprintf(text, HFD_UID_MAX,
                       "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0],
                       b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12],
                       b[13], b[14], b[15]);
        return 0;
}

int hfd_meta_prepare_create(const struct hfd_resource *resource, const char *ns,
                            struct hf__json *object, int64_t now_s) {
        static const char *const server_only[] = {"metadata.deletionTimestamp",
                                                  "metadata.deletionGracePeriodSeconds",
                                                  "metadata.selfLink",
                                                  "metadata.resourceVersion",
                                                  "metadata.managedFields",
                                                  "metadata.generation"};
        char uid[HFD_UID_MAX], now[HF__MICROTIME_MAX];

        for (size_t i = 0; i < sizeof server_only / sizeof server_only[0]; i++)
                hf__json_remove(object, server_only[i]);
        hf__time_format(now_s, now);
        int r = hfd_meta_make_uid(uid);
        if (r == 0 && resource->namespaced)
                r = hf__json_set_string(object, "metadata.namespace", ns);
        if (!resource->namespaced)
                hf__json_remove(object, "metadata.namespace");
        if (r == 0)
                r = hf__json_set_string(object, "metadata.uid", uid);
        if (r == 0)
                r = hf__json_set_string(object, "metadata.creationTimestamp", now);
        return r;
}

int hfd_meta_make_name(const char *base, char ret_name[HFD_GENERATED_NAME_MAX]) {
        static const char alphabet[] =
                "bcdfghjklmnpqrstvwxz2456789"; /* no vowels, so that no words appear */
        unsigned char random[N_RANDOM];

        if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
                return -EIO;
        int n = snprintf(ret_name, HFD_GENERATED_NAME_MAX - N_RANDOM, "%.*s", GENERATE_NAME_MAX,
                         base);
        /* The remainder prefers some characters a little. That does no harm: a name need not be
         * secret, and a name that is taken leads to another attempt. */
        for (int i = 0; i < N_RANDOM; i++)
                ret_name[n + i] = alphabet[random[i] % (sizeof alphabet - 1)];
        ret_name[n + N_RANDOM] = '\0';
        return 0;
}

int hfd_meta_generate_name(struct hf__json *object) {
        const char *base = hf__json_string(object, "metadata.generateName");
        char name[HFD_GENERATED_NAME_MAX];
        int r = hfd_meta_make_name(base ? base : "", name);

        return r == 0 ? hf__json_set_string(object, "metadata.name", name) : r;
}

/* Copies a field from the stored object, if the stored object has it. unless_given: only if the
 * client has left it out or sent null. 0 or -ENOMEM. */
static int carry_over_field(struct hf__json *meta, const struct hf__json *old_meta, const char *key,
                            bool unless_given) {
        const struct hf__json *old_value = hf__json_get(old_meta, key);

        if ((unless_given && !is_absent(hf__json_get(meta, key))) || !old_value)
                return 0;
        struct hf__json *copy = hf__json_dup(old_value);
        return copy ? hf__json_put(meta, key, copy) : -ENOMEM;
}

/* Members whose changes do not increment the generation. */
static const char *const uncounted[] = {"kind", "apiVersion", "metadata", "status"};
#define N_UNCOUNTED (sizeof uncounted / sizeof uncounted[0])

/* The first member from m on whose changes count; NULL = there is none. */
static const struct hf__json *counted_metadata(const struct hf__json *m) {
        for (; m; m = hf__json_next(m)) {
                size_t i = 0;
                while (i < N_UNCOUNTED && strcmp(hf__json_key(m), uncounted[i]) != 0)
                        i++;
                if (i == N_UNCOUNTED)
                        return m;
        }
        return NULL;
}

static struct hf__json *copy_counted(const struct hf__json *object) {
        struct hf__json *copy = hf__json_dup(object);

        for (size_t i = 0; i < N_UNCOUNTED; i++)
                hf__json_remove(copy, uncounted[i]);
        return copy;
}

/* Compares the members that count: as JSON, in any order. */
static int compare_copies(const struct hf__json *old, const struct hf__json *object,
                          bool *ret_changed) {
        struct hf__json *before = copy_counted(old), *after = copy_counted(object);
        int r = before && after ? 0 : -ENOMEM;

        if (r == 0)
                *ret_changed = !hf__json_equal(before, after);
        hf__json_free(before);
        hf__json_free(after);
        return r;
}

/* *ret_changed: whether a member of `object` that counts differs from that of `other`. Compares as
 * Go does: a member that a typed client leaves out because it is zero has not changed. The members
 * are those of the schema, so they are few. 0 or -ENOMEM. */
static int compare_by_schema(const struct hfd_schema *schema, const struct hf__json *object,
                             const struct hf__json *other, bool *ret_changed) {
        bool equal = true;
        int r = 0;

        for (const struct hf__json *m = counted_metadata(hf__json_first(object));
             m && r == 0 && equal; m = counted_metadata(hf__json_next(m)))
                r = hfd_schema_are_members_equal(schema, object, other, hf__json_key(m), &equal);
        *ret_changed = !equal;
        return r;
}

/* *ret_changed: whether the generation must be incremented. Members mostly have the same order and
 * are equal, and then nothing is looked up. Custom resources are compared as JSON, as in
 * Kubernetes. 0 or -ENOMEM. */
static int compare_counted(const struct hfd_resource *resource, const struct hf__json *old,
                           const struct hf__json *object, bool *ret_changed) {
        const struct hf__json *x = counted_metadata(hf__json_first(old)),
                              *y = counted_metadata(hf__json_first(object));

        while (x && y && strcmp(hf__json_key(x), hf__json_key(y)) == 0 && hf__json_equal(x, y)) {
                x = counted_metadata(hf__json_next(x));
                y = counted_metadata(hf__json_next(y));
        }
        *ret_changed = false;
        if (!x && !y)
                return 0;
        if (resource->custom || !resource->schema)
                return compare_copies(old, object, ret_changed);
        int r = compare_by_schema(resource->schema, old, object, ret_changed);
        return r == 0 && !*ret_changed
                       ? compare_by_schema(resource->schema, object, old, ret_changed)
                       : r;
}

/* Whether the map in metadata that counts has changed. An empty one is the same as none. */
static bool has_changed_metadata(const struct hfd_resource *resource, const struct hf__json *object,
                                 const struct hf__json *old) {
        const char *key = resource->counted_metadata;

        if (!key)
                return false;
        const struct hf__json *before = hf__json_get(hf__json_get(old, "metadata"), key),
                              *after = hf__json_get(hf__json_get(object, "metadata"), key);
        if (!hf__json_first(before) || !hf__json_first(after))
                return hf__json_first(before) != hf__json_first(after);
        return !hf__json_equal(before, after);
}

int hfd_meta_set_generation(const struct hfd_resource *resource, struct hf__json *object,
                            const struct hf__json *old, bool of_status) {
        int64_t generation = 0;
        bool has_generation = hf__json_i64(old, "metadata.generation", &generation);

        if (resource->has_generation) {
                bool changed = false;
                int r = compare_counted(resource, old, object, &changed);
                if (r != 0)
                        return r;
                if (changed || (!of_status && has_changed_metadata(resource, object, old))) {
                        has_generation = true;
                        generation++;
                }
        }
        if (has_generation)
                return hf__json_set_i64(object, "metadata.generation", generation);
        hf__json_remove(object, "metadata.generation");
        return 0;
}

int hfd_meta_prepare_update(const struct hfd_resource *resource, struct hf__json *object,
                            const struct hf__json *old) {
        static const struct {
                const char *key;
                bool unless_given; /* validation then refuses another value */
        } carried[] = {{"namespace", true},
                       {"uid", true},
                       {"creationTimestamp", false},
                       {"deletionTimestamp", false},
                       {"deletionGracePeriodSeconds", true}};
        struct hf__json *meta = hf__json_get(object, "metadata"),
                        *old_meta = hf__json_get(old, "metadata");
        int r = 0;

        assert(hf__json_is_object(meta) && old);
        for (size_t i = 0; r == 0 && i < sizeof carried / sizeof carried[0]; i++)
                r = carry_over_field(meta, old_meta, carried[i].key, carried[i].unless_given);
        hf__json_remove(meta, "resourceVersion");
        hf__json_remove(meta, "selfLink");
        return r;
}
