/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The leader-only controller service-account-tokens: fills the Secrets of the type
 * kubernetes.io/service-account-token with tokens of service accounts. It deletes such a Secret
 * when its account is deleted, or if it names no account. */
#include <holdfast/informer.h>
#include <holdfast/leader.h>

#define HFD_TOKEN_SECRETS "service-account-tokens"

/* The index of the informer of these Secrets: its values are "namespace/account". */
#define HFD_ACCOUNT_INDEX "account"
/* The function of the index; it has no ctx. */
void hfd_token_secrets_index(void *ctx, const char *ns, const char *name, const char *object,
                             size_t n, struct hf_informer_values *values);

/*
 * hf_controller.run; ctx is the struct hfd_controller_context, which is borrowed. Thread: the
 * term's thread for this controller. Blocks until the term drains or aborts.
 */
int hfd_token_secrets_run(struct hf_term *term, void *ctx);
