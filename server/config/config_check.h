/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Checks a completed configuration (config.h). A message names the flag, and the rule that it
 * breaks. Pure: no I/O. Thread: any.
 */
#include "server/config/config.h"

/* The rules that concern flags alone. HF_E_INVALID: a flag breaks one. Or -ENOMEM. */
int hfd_config_check(const struct hfd_config *config, struct hf_status *reterr_status);
/* known: the names of all controllers, NULL-terminated. HF_E_INVALID: --controllers has a name that
 * is not known. */
int hfd_config_check_controllers(const struct hfd_config *config, const char *const *known,
                                 struct hf_status *reterr_status);
