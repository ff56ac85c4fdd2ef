/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adds and finds the controller among an object's owner references.
 *
 * Invariant: an object never gets a second controller, and references to other owners stay. Two
 * controllers would undo each other's work without an end, and the API server refuses such an
 * object.
 */
#include <holdfast/owner.h>

#include <errno.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"

#define REFERENCES "metadata.ownerReferences"

/* The reference to the controller, or NULL. */
static struct hf__json *controller_of(const struct hf__json *object) {
        struct hf__json *m = hf__json_first(hf__json_path(object, REFERENCES));

        while (m && !hf__json_bool(m, "controller", false))
                m = hf__json_next(m);
        return m;
}

/* Owners are told apart by their uid: an object of the same name that was created later is another
 * owner. blockOwnerDeletion makes a foreground deletion of the owner wait for this object. 0,
 * -ENOMEM, HF_E_CONFLICT or HF_E_INVALID, as hf_owner_set returns them. */
static int set_controller(struct hf__json *object, const struct hf__json *owner) {
        static const char *const members[][2] = {{"apiVersion", "apiVersion"},
                                                 {"kind", "kind"},
                                                 {"name", "metadata.name"},
                                                 {"uid", "metadata.uid"}};
        const char *ns = hf__json_string(owner, "metadata.namespace");
        const struct hf__json *controller = controller_of(object);

        for (size_t i = 0; i < sizeof members / sizeof *members; i++)
                if (!hf__json_string(owner, members[i][1]))
                        return HF_E_INVALID;
        if (!hf__json_is_object(object) ||
            (ns && ns[0] && !hf__json_has_text(object, "metadata.namespace", ns)))
                return HF_E_INVALID;
        const char *uid = hf__json_string(owner, "metadata.uid");
        if (controller && !hf__json_has_text(controller, "uid", uid))
                return HF_E_CONFLICT;
        struct hf__json *reference = NULL;
        int r = hf__json_find_or_append(object, REFERENCES, "uid", uid, &reference);
        if (r == -EINVAL)
                return HF_E_INVALID;
        for (size_t i = 0; r == 0 && i < sizeof members / sizeof *members; i++)
                r = hf__json_put_string(reference, members[i][0],
                                        hf__json_string(owner, members[i][1]));
        if (r == 0)
                r = hf__json_set_bool(reference, "controller", true);
        return r != 0 ? r : hf__json_set_bool(reference, "blockOwnerDeletion", true);
}

int hf_owner_set(const char *object, size_t n, const char *owner, size_t n_owner,
                 char **ret_object) {
        struct hf__json *json = NULL, *owner_json = NULL;
        struct hf__strbuf text = {0};

        if (!object || !owner || !ret_object)
                return -EINVAL;
        int r = hf__json_parse(object, n, &json, NULL);
        if (r == 0)
                r = hf__json_parse(owner, n_owner, &owner_json, NULL);
        if (r == 0)
                r = set_controller(json, owner_json);
        if (r == 0)
                hf__json_print(json, &text);
        r = r != 0 ? r : text.error;
        hf__json_free(json);
        hf__json_free(owner_json);
        if (r == 0)
                *ret_object = text.data;
        else
                hf__strbuf_done(&text);
        return r > 0 && r != HF_E_CONFLICT ? HF_E_INVALID : r;
}

int hf_owner_check(const char *object, size_t n, const char *uid, bool *ret_is_controller) {
        struct hf__json *json;

        if (!object || !uid || !ret_is_controller)
                return -EINVAL;
        int r = hf__json_parse(object, n, &json, NULL);
        if (r != 0)
                return r < 0 ? r : HF_E_INVALID;
        *ret_is_controller = hf__json_has_text(controller_of(json), "uid", uid);
        hf__json_free(json);
        return 0;
}

/* Whether the apiVersion belongs to the group, in any version. */
static bool has_group(const char *api_version, const char *group) {
        const char *slash = strchr(api_version, '/');
        size_t n = slash ? (size_t)(slash - api_version) : 0;

        return strlen(group) == n && memcmp(api_version, group, n) == 0;
}

int hf_owner_name(const char *object, size_t n, const char *group, const char *kind,
                  char ret_name[HF_NAME_MAX + 1]) {
        struct hf__json *json;

        if (!object || !kind || !ret_name)
                return -EINVAL;
        int r = hf__json_parse(object, n, &json, NULL);
        if (r != 0)
                return r < 0 ? r : HF_E_INVALID;
        const struct hf__json *controller = controller_of(json);
        const char *api_version = hf__json_string(controller, "apiVersion");
        const char *name = hf__json_string(controller, "name");
        if (api_version && name && strlen(name) <= HF_NAME_MAX &&
            has_group(api_version, group ? group : "") &&
            hf__json_has_text(controller, "kind", kind))
                (void)strcpy(ret_name, name);
        else
                r = HF_E_NOT_FOUND;
        hf__json_free(json);
        return r;
}
