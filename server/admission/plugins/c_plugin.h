/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Admission plug-ins from shared objects (<holdfast/admission.h>). Once loaded they stay until the
 * process ends. The server loads them before it serves, one after the other, and frees the handles
 * after the last request. Requests use them on any thread, several at a time.
 */
#include <holdfast/error.h>

#include "server/admission/admission.h"

struct hfd_c_plugin;

#define HFD_C_PLUGINS_MAX 8 /* plug-ins that a server loads at most (--admission-plugin) */

/*
 * Loads the file, whose path must be absolute. Blocks on files. Once loaded, the file stays open
 * until the process ends. 0, -ENOMEM, or an error of hfd_trusted_open; HF_E_INVALID also if the
 * path is not absolute, or the file cannot be loaded, is not a plug-in or has failed to start.
 * reterr_status must not be NULL.
 */
int hfd_c_plugin_load(const char *path, struct hfd_c_plugin **ret_plugin,
                      struct hf_status *reterr_status);
/* Checks what can be checked without running code of the file: its path and who may replace it.
 * Otherwise as hfd_c_plugin_load. */
int hfd_c_plugin_check(const char *path, struct hf_status *reterr_status);
/* Frees the handle; the shared object stays loaded. Accepts NULL, returns NULL. */
struct hfd_c_plugin *hfd_c_plugin_free(struct hfd_c_plugin *plugin);
/* The plug-in for a chain; it borrows from plugin. */
struct hfd_admission_plugin hfd_c_plugin_of_chain(struct hfd_c_plugin *plugin);
