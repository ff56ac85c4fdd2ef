/* SPDX-License-Identifier: Apache-2.0 */
/* For programs of ours that are the host. Not in the installed library: there it is the host's own
 * act. */
#include <curl/curl.h>
#include <errno.h>

#include "base/http/engine.h"

int hf__http_global_init(void) {
        return curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK ? 0 : -ENOMEM;
}
