/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Kubernetes' static token file as a table. A line of the file is `token,user,uid,"group1,group2"`.
 * If a token appears twice, the last line counts, as in kube-apiserver. Private to server/auth.
 *
 * Thread: any. The table is immutable once it is loaded.
 */
#include <stdbool.h>
#include <stdint.h>

#include <holdfast/error.h>

struct hfd_tokens;
struct hfd_user;

/* Loads the file; blocks. Blank lines are skipped. seed is a random secret for the hash. 0,
 * -ENOMEM, an error of hfd_read_file, or HF_E_INVALID: a line is wrong, and the message has its
 * number. */
int hfd_tokens_load(const char *path, uint64_t seed, struct hfd_tokens **ret_tokens,
                    struct hf_status *reterr_status);
struct hfd_tokens *hfd_tokens_free(struct hfd_tokens *tokens); /* accepts NULL, returns NULL */
/* True: ret_user has the name and the groups of the token, without system:authenticated, for which
 * there is room. It also has the uid, unless that is too long for a struct hfd_user; then the uid
 * is unchanged, as extra always is. False: the token is unknown, and ret_user is unchanged. */
bool hfd_tokens_find(const struct hfd_tokens *tokens, const char *token, struct hfd_user *ret_user);
