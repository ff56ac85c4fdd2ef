/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Finds and loads the module (module.h). Private to server/outbound. */
#include <holdfast/error.h>

#include "server/outbound/module.h"

/*
 * Loads the module from the file path. If path is NULL, loads the file beside the running program,
 * as in a build directory, or the installed one if there is none. The module is never unloaded.
 * Blocks on files, so it runs on a thread of its own (outbound.c). 0; HF_E_NOT_FOUND: the file is
 * missing or cannot be loaded; HF_E_INVALID: it is a module of another version, or no module. The
 * message is one line that names the file and how to get it.
 */
int hfd_outbound_load(const char *path, const struct hfd_outbound_module **ret_module,
                      struct hf_status *reterr_status);
