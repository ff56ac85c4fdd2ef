/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The non-resource endpoints: /healthz /livez /readyz with their sub-checks (`?verbose`,
 * `?exclude=`), /version, /metrics. Bodies as apiserver.md 1.4. on_ready is called once, on the
 * first successful /readyz.
 */
#include <holdfast/health.h>
#include <holdfast/metrics.h>

#include "server/http/router.h"

struct hfd_healthz;
int hfd_healthz_new(const struct hf_host *host, void (*on_ready)(void *ctx), void *ctx,
                    struct hfd_healthz **ret_endpoints);
int hfd_healthz_install(struct hfd_healthz *healthz, struct hfd_router *router);
struct hfd_healthz *hfd_healthz_free(struct hfd_healthz *healthz);
