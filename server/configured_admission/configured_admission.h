/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Builds the chain of admission plug-ins: those of the command line, then policies and webhooks.
 * Thread: that of hfd_assembly_make, but main for hfd_configured_admission_check and _free. */
#include <holdfast/error.h>

struct hfd_config;
struct hfd_server;

/* Loads the plug-ins of --admission-plugin, which come first in the chain. Blocks on files. 0, an
 * error of hfd_c_plugin_load, or HF_E_INVALID: there are more than HFD_C_PLUGINS_MAX files. After
 * an error hfd_configured_admission_free frees the plug-ins that were loaded. */
int hfd_configured_admission_load(struct hfd_server *server, struct hf_status *reterr_status);
/* Checks the files of --admission-plugin as far as hfd_c_plugin_check does; reterr_status tells the
 * first fault. */
int hfd_configured_admission_check(const struct hfd_config *config,
                                   struct hf_status *reterr_status);
/* Adds policies and webhooks, gives the chain to the registry and starts the feed, a thread that
 * passes new policies and webhooks to their plug-ins (admission_feed.h). 0 or -errno. After an
 * error hfd_configured_admission_free frees what was made. */
int hfd_configured_admission_make(struct hfd_server *server);
/* Call it when the feed is stopped and no admission is under way. */
void hfd_configured_admission_free(struct hfd_server *server);
