/* SPDX-License-Identifier: Apache-2.0 */
/* The groups of a user. Names are compared as a whole; there are no patterns. */
#include "server/auth/user.h"

#include <string.h>

bool hfd_user_in_group(const struct hfd_user *user, const char *group) {
        for (size_t i = 0; i < user->n_groups; i++)
                if (strcmp(user->groups[i], group) == 0)
                        return true;
        return false;
}
