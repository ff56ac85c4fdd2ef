/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fills in a struct hfd_user, which has its texts in arrays of fixed size, and makes the smaller
 * struct hfd_requester of it, which a request keeps.
 *
 * Invariant: a text that does not fit is refused, never cut: a user with a shorter name or without
 * one of its groups would be another user.
 */
#include "server/auth/user.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

bool hfd_user_in_group(const struct hfd_user *user, const char *group) {
        for (size_t i = 0; i < user->n_groups; i++)
                if (strcmp(user->groups[i], group) == 0)
                        return true;
        return false;
}

/* False: the text does not fit, and nothing is copied. */
static bool copy_text(char *to, size_t max, const char *from) {
        size_t n = strlen(from);
        if (n >= max)
                return false;
        memcpy(to, from, n + 1);
        return true;
}

bool hfd_user_set_name(struct hfd_user *user, const char *name) {
        return copy_text(user->name, sizeof user->name, name);
}

bool hfd_user_set_uid(struct hfd_user *user, const char *uid) {
        return copy_text(user->uid, sizeof user->uid, uid);
}

bool hfd_user_add_group(struct hfd_user *user, const char *group) {
        assert(user->n_groups <= HFD_MAX_GROUPS);
        if (user->n_groups == HFD_MAX_GROUPS ||
            !copy_text(user->groups[user->n_groups], sizeof user->groups[0], group))
                return false;
        user->n_groups++;
        return true;
}

bool hfd_user_add_extra(struct hfd_user *user, const char *key, const char *value) {
        assert(user->n_extra <= sizeof user->extra);
        size_t n_key = strlen(key) + 1, n_value = strlen(value) + 1;

        if (n_key + n_value > sizeof user->extra - user->n_extra)
                return false;
        memcpy(user->extra + user->n_extra, key, n_key);
        memcpy(user->extra + user->n_extra + n_key, value, n_value);
        user->n_extra += n_key + n_value;
        return true;
}

struct hfd_subject hfd_user_subject(const struct hfd_user *user,
                                    const char *groups[HFD_MAX_GROUPS]) {
        assert(user->n_groups <= HFD_MAX_GROUPS);
        for (size_t i = 0; i < user->n_groups; i++)
                groups[i] = user->groups[i];
        return (struct hfd_subject){.name = user->name,
                                    .groups = groups,
                                    .n_groups = user->n_groups};
}

/* Copies n bytes to *at, and advances *at past the copy. */
static const char *store_bytes(char **at, const char *bytes, size_t n) {
        const char *copy = memcpy(*at, bytes, n);

        *at += n;
        return copy;
}

struct hfd_requester *hfd_requester_new(const struct hfd_user *user) {
        assert(user->n_groups <= HFD_MAX_GROUPS && user->n_extra <= sizeof user->extra);
        size_t n_text = strlen(user->name) + 1 + strlen(user->uid) + 1 + user->n_extra;

        for (size_t i = 0; i < user->n_groups; i++)
                n_text += strlen(user->groups[i]) + 1;
        struct hfd_requester *requester =
                malloc(sizeof *requester + user->n_groups * sizeof(char *) + n_text);
        if (!requester)
                return NULL;
        const char **groups = (const char **)(requester + 1);
        char *at = (char *)(groups + user->n_groups);
        for (size_t i = 0; i < user->n_groups; i++)
                groups[i] = store_bytes(&at, user->groups[i], strlen(user->groups[i]) + 1);
        *requester =
                (struct hfd_requester){.subject = {.name = store_bytes(&at, user->name,
                                                                       strlen(user->name) + 1),
                                                   .groups = groups,
                                                   .n_groups = user->n_groups},
                                       .uid = store_bytes(&at, user->uid, strlen(user->uid) + 1),
                                       .extra = store_bytes(&at, user->extra, user->n_extra),
                                       .n_extra = user->n_extra};
        assert(at == (char *)(groups + user->n_groups) + n_text);
        return requester;
}
