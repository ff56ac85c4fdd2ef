/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The tokens of service accounts as controllers see them. Thread: any. */
#include "server/controllers/base/account_tokens.h"

struct hfd_service_accounts;

/* accounts outlives the controllers. */
struct hfd_account_token_functions
hfd_secret_token_functions(struct hfd_service_accounts *accounts);
