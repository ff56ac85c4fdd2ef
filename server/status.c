/* SPDX-License-Identifier: Apache-2.0 */
#include "server/host.h"
int hfd_status_main(const struct hfd_config *config) { return config == NULL; }
