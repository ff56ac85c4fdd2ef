/* SPDX-License-Identifier: Apache-2.0 */
/* Initialises libcurl for programs that are their own host. It is kept apart from the engine,
 * because a library must not change the state of its host's process. */
#include "base/http/global.h"

#include <curl/curl.h>
#include <errno.h>

int hf__http_global_init(void) {
        return curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK ? 0 : -ENOMEM;
}
