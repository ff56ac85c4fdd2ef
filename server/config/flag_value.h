/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Parses the value of one flag. Private to server/config. Pure. Thread: any. */
#include "server/config/flag_table.h"

/*
 * Parses value into the flag's member of config, and frees the string that was there. 0, -ENOMEM,
 * or HF_E_INVALID: the value has the wrong form or is out of range. The message names the flag.
 */
int hfd_flag_value_set(const struct hfd_flag *flag, const char *value, struct hfd_config *config,
                       struct hf_status *reterr_status);
/* Appends a comma and value to the flag's member of config, which is a list. 0 or -ENOMEM. */
int hfd_flag_value_append(const struct hfd_flag *flag, const char *value, struct hfd_config *config,
                          struct hf_status *reterr_status);
/* Parses a boolean in any spelling that Kubernetes accepts. False: value is not a boolean. */
bool hfd_flag_value_parse_bool(const char *value, bool *ret_yes);
