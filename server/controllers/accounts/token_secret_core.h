/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The required content of a Secret of the type kubernetes.io/service-account-token. Pure. Thread:
 * any. */
#include <stdbool.h>

#include <holdfast/error.h>

struct hf__json;

#define HFD_TOKEN_SECRET_TYPE "kubernetes.io/service-account-token"

/* The name of the Secret's account, from its annotation. NULL: the Secret names no account.
 * Borrowed. */
const char *hfd_token_secret_account(const struct hf__json *secret);
/* Whether the Secret may belong to the account with this uid: its annotation for the uid is absent
 * or equal. The caller has found the account by the name in the Secret. */
bool hfd_token_secret_is_of(const struct hf__json *secret, const char *uid);

/* The parts that a Secret can lack, as bits. */
enum { HFD_LACKS_TOKEN = 1, HFD_LACKS_CA = 2, HFD_LACKS_NAMESPACE = 4, HFD_LACKS_UID = 8 };
/* Returns the bits of the parts that the Secret lacks. ca: the PEM text that it must have. */
unsigned hfd_token_secret_lacks(const struct hf__json *secret, const char *ca);

/* Adds the parts that the Secret lacks. Always sets the CA and the uid. Sets the token unless
 * `token` is NULL, and the namespace unless the Secret has one. 0 or -ENOMEM. */
int hfd_token_secret_fill(struct hf__json *secret, const char *token, const char *ca,
                          const char *ns, const char *account_uid);
