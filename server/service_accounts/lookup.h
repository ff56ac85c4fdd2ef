/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Whether the objects that a token depends on still exist. Thread: any. Never blocks. */
#include <stdint.h>

#include <holdfast/error.h>

#include "server/auth/credential.h"

struct hfd_cacher;

/* now: seconds since 1970. 0, or HF_E_UNAUTHORIZED with a message: the token has expired, or the
 * account or the Secret does not exist, has another uid or none, or its deletion began more than a
 * minute ago. A token that a Secret holds does not expire, and the uid of its Secret is not
 * compared. It ends as soon as the deletion of the account or of the Secret begins, or the Secret
 * has another token or marks it as invalid. */
int hfd_account_lookup(struct hfd_cacher *cacher, const struct hfd_credential *credential,
                       int64_t now, struct hf_status *reterr_status);
