/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Finds and loads the module (module.h). Private to server/outbound. */
#include <holdfast/error.h>

#include "server/outbound/module.h"

/*
 * Loads the module: path, or if that is NULL the one in the directory of the running program, as in
 * a build directory, or else the installed one. It is never unloaded. Blocks on files, so it runs
 * on a thread of its own (outbound.c).
 * HF_E_NOT_FOUND: it is missing or cannot be loaded; HF_E_INVALID: it belongs to another version.
 * The message is one line that names the file and how to get it.
 */
int hfd_outbound_load(const char *path, const struct hfd_outbound_module **ret_module,
                      struct hf_status *reterr_status);
