/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON merge patch (RFC 7396): a member of the patch replaces the member of the document that has
 * the same key; if both are objects, they are merged; null removes the member.
 *
 * Invariant: a null that means removal never gets into the document. So if the document has no
 * object for an object of the patch, the latter is merged into an empty object instead of copied.
 * The same holds for objects within an array. As in Kubernetes there are two exceptions: a null
 * that is an element stays, and so does all that is in an array that replaces an object. The
 * recursion is as deep as the patch, whose depth the parser limits.
 */
#include "server/patch/merge_patch.h"

#include <assert.h>
#include <errno.h>

#include "base/json.h"
#include "server/patch/members.h"

static int merge_object(struct hf__json *target, const struct hf__json *patch,
                        struct hfd_patch_outcome *outcome);

static int make_value(const struct hf__json *patch, struct hfd_patch_outcome *outcome,
                      struct hf__json **ret_value);

static int append_values(struct hf__json *array, const struct hf__json *patch,
                         struct hfd_patch_outcome *outcome) {
        int r = 0;

        for (const struct hf__json *m = hf__json_first(patch); m && r == 0; m = hf__json_next(m)) {
                struct hf__json *value = NULL;
                r = make_value(m, outcome, &value);
                if (r == 0)
                        r = hf__json_append(array, value);
        }
        return r;
}

/* Makes a new value of the patch's value, without the nulls that mean removal. */
static int make_value(const struct hf__json *patch, struct hfd_patch_outcome *outcome,
                      struct hf__json **ret_value) {
        bool array = hf__json_is_array(patch);
        struct hf__json *value;
        int r;

        if (!array && !hf__json_is_object(patch)) {
                *ret_value = hf__json_dup(patch);
                return *ret_value ? 0 : -ENOMEM;
        }
        value = array ? hf__json_array() : hf__json_object();
        if (!value)
                return -ENOMEM;
        r = array ? append_values(value, patch, outcome) : merge_object(value, patch, outcome);
        if (r != 0) {
                hf__json_free(value);
                return r;
        }
        *ret_value = value;
        return 0;
}

static int merge_member(struct hfd_members *members, const struct hf__json *patch,
                        struct hfd_patch_outcome *outcome) {
        const char *key = hf__json_key(patch);
        struct hf__json *member, *value = NULL;
        int r;

        if (hf__json_is_null(patch))
                return hfd_members_drop(members, key);
        member = hfd_members_find(members, key);
        if (hf__json_is_object(patch) && hf__json_is_object(member))
                return merge_object(member, patch, outcome);
        if (hf__json_is_object(member))
                return hfd_members_set(members, key, hf__json_dup(patch));
        r = make_value(patch, outcome, &value);
        return r == 0 ? hfd_members_set(members, key, value) : r;
}

static int merge_object(struct hf__json *target, const struct hf__json *patch,
                        struct hfd_patch_outcome *outcome) {
        struct hfd_members members;
        int r = hfd_members_init(&members, target);

        if (r == 0)
                r = hfd_patch_spend(outcome, members.steps + hf__json_count(patch));
        for (const struct hf__json *m = hf__json_first(patch); m && r == 0; m = hf__json_next(m))
                r = merge_member(&members, m, outcome);
        hfd_members_done(&members);
        return r;
}

int hfd_merge_patch_apply(struct hf__json **document, const struct hf__json *patch,
                          struct hfd_patch_outcome *outcome) {
        assert(hf__json_is_object(*document) && hf__json_is_object(patch));
        return merge_object(*document, patch, outcome);
}
