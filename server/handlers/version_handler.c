/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET /version. The body is a constant.
 *
 * Invariant: buildDate is a valid time, because clients parse it. It is not the real build time, so
 * that builds are reproducible.
 */
#include "server/handlers/version_handler.h"

#include <string.h>

#include "base/strbuf.h"
#include "server/filters/status_response.h"
#include "server/handlers/read_endpoint.h"

static const char body_text[] = "{\n"
                                "  \"major\": \"" HFD_KUBE_MAJOR "\",\n"
                                "  \"minor\": \"" HFD_KUBE_MINOR "\",\n"
                                "  \"emulationMajor\": \"" HFD_KUBE_MAJOR "\",\n"
                                "  \"emulationMinor\": \"" HFD_KUBE_MINOR "\",\n"
                                "  \"minCompatibilityMajor\": \"" HFD_KUBE_MAJOR "\",\n"
                                "  \"minCompatibilityMinor\": \"" HFD_KUBE_COMPATIBLE_MINOR "\",\n"
                                "  \"gitVersion\": \"" HFD_GIT_VERSION "\",\n"
                                "  \"gitCommit\": \"\",\n"
                                "  \"gitTreeState\": \"\",\n"
                                "  \"buildDate\": \"1970-01-01T00:00:00Z\",\n"
                                "  \"goVersion\": \"none\",\n"
                                "  \"compiler\": \"" __VERSION__ "\",\n"
                                "  \"platform\": \"linux\"\n"
                                "}\n";

void hfd_version_handle(void *ctx, struct hfd_http_request *request) {
        const char *path = hfd_http_request_path(request);
        struct hf__strbuf body = {0};

        if (strcmp(path, "/version") != 0 && strcmp(path, "/version/") != 0) {
                hfd_status_response_text(request, 404, "404 page not found\n", 0, false);
        } else if (hfd_read_endpoint_accepts(request, false)) {
                hf__strbuf_puts(&body, body_text);
                hfd_read_endpoint_reply(request, "application/json", &body);
        }
        hf__strbuf_done(&body);
        hfd_http_request_unref(request);
}
