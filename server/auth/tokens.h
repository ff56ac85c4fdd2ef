/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The token file of the field, `token,user,uid,"group1,group2"` per line, as an immutable table.
 * The uid is read past. A token that stands twice keeps its last line, as in the field. Private to
 * server/auth.
 */
#include <stdbool.h>
#include <stdint.h>

#include <holdfast/error.h>

struct hfd_tokens;
struct hfd_user;

/* HF_E_INVALID names file and line. Blank lines are skipped. */
int hfd_tokens_load(const char *path, uint64_t seed, struct hfd_tokens **ret_tokens,
                    struct hf_status *reterr_status);
struct hfd_tokens *hfd_tokens_free(struct hfd_tokens *tokens); /* accepts NULL */
bool hfd_tokens_find(const struct hfd_tokens *tokens, const char *token, struct hfd_user *ret_user);
