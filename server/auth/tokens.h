/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Kubernetes' static token file, one `token,user,uid,"group1,group2"` per line, as a table. If a
 * token appears twice, the last line counts, as in kube-apiserver. Private to server/auth.
 *
 * Threads: the table is immutable once it is loaded, so that any thread may look tokens up.
 */
#include <stdbool.h>
#include <stdint.h>

#include <holdfast/error.h>

struct hfd_tokens;
struct hfd_user;

/* Loads the file; blocks. Blank lines are skipped. seed is a random secret for the hash. 0, -errno,
 * HF_E_NOT_FOUND, HF_E_TOO_LARGE, or HF_E_INVALID: a bad line, whose number the message has, or an
 * error of hfd_read_file. */
int hfd_tokens_load(const char *path, uint64_t seed, struct hfd_tokens **ret_tokens,
                    struct hf_status *reterr_status);
struct hfd_tokens *hfd_tokens_free(struct hfd_tokens *tokens); /* accepts NULL, returns NULL */
/* True: ret_user has the name, the uid and the groups of the token. False: the token is unknown,
 * and ret_user is unchanged. */
bool hfd_tokens_find(const struct hfd_tokens *tokens, const char *token, struct hfd_user *ret_user);
