/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What a Secret of the type kubernetes.io/service-account-token must have. Pure. Thread: any. */
#include <stdbool.h>

#include <holdfast/error.h>

struct hf__json;

#define HFD_TOKEN_SECRET_TYPE "kubernetes.io/service-account-token"

/* The name of the Secret's account. NULL: it names none. Borrowed. */
const char *hfd_token_secret_account(const struct hf__json *secret);
/* Whether the account with this uid is meant: the Secret names it by its name alone, or has also
 * this uid. */
bool hfd_token_secret_is_of(const struct hf__json *secret, const char *uid);

/* What the Secret lacks; a set of bits. ca: the PEM text that it must have. */
enum { HFD_LACKS_TOKEN = 1, HFD_LACKS_CA = 2, HFD_LACKS_NAMESPACE = 4, HFD_LACKS_UID = 8 };
unsigned hfd_token_secret_lacks(const struct hf__json *secret, const char *ca);

/* Adds what the Secret lacks. The CA and the uid are always set; a namespace that is there stays,
 * and with token NULL the token too. 0 or -ENOMEM. */
int hfd_token_secret_fill(struct hf__json *secret, const char *token, const char *ca,
                          const char *ns, const char *account_uid);
