/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The user of a request: a name, groups, a uid and extra values, as in Kubernetes. Pure. Thread:
 * owner only. */
#include <stdbool.h>
#include <stddef.h>

#include "server/rbac/attributes.h"

#define HFD_MAX_GROUPS          16 /* with system:authenticated; a user lives on the stack */
#define HFD_NAMESPACE_MAX       64 /* bytes of the name of a namespace, with the NUL */
#define HFD_USER_ANONYMOUS      "system:anonymous" /* a request without credentials */
#define HFD_GROUP_AUTHENTICATED "system:authenticated"
/* The key of the extra value that names the credential of a user, as in Kubernetes. */
#define HFD_USER_CREDENTIAL "authentication.kubernetes.io/credential-id"
#define HFD_USER_EXTRA      1024 /* bytes of all extra values of a user, with keys and NULs */

struct hfd_user {
        /* "system:anonymous" for a request without credentials. There is room for the longest name
         * of a service account. */
        char name[352];
        char groups[HFD_MAX_GROUPS][128];
        size_t n_groups;
        char uid[128];              /* "" = unknown */
        char extra[HFD_USER_EXTRA]; /* keys, each followed by a value, all with their NULs */
        size_t n_extra;             /* bytes of extra that are used; not the number of values */
};

bool hfd_user_in_group(const struct hfd_user *user, const char *group);
/* False: the name is too long; the user keeps the old name. */
bool hfd_user_set_name(struct hfd_user *user, const char *name);
/* False: the uid is too long; the user keeps the old one. */
bool hfd_user_set_uid(struct hfd_user *user, const char *uid);
/* False: there are too many groups, or this one is too long. */
bool hfd_user_add_group(struct hfd_user *user, const char *group);
/* False: there is no room for another extra value. */
bool hfd_user_add_extra(struct hfd_user *user, const char *key, const char *value);

/* The name and the groups, which decide about rights. Fills groups with pointers into user; the
 * result borrows both. */
struct hfd_subject hfd_user_subject(const struct hfd_user *user,
                                    const char *groups[HFD_MAX_GROUPS]);

/*
 * A copy of a user that takes no more memory than its texts need. It is immutable, and one block of
 * memory, which the owner frees with free.
 */
struct hfd_requester {
        struct hfd_subject subject;
        const char *uid;
        const char *extra; /* as in struct hfd_user */
        size_t n_extra;
};
/* NULL: out of memory. */
struct hfd_requester *hfd_requester_new(const struct hfd_user *user);
