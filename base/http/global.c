/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Initialises libcurl for Holdfast's own programs.
 *
 * Invariant: the engine never does this, because it changes the state of the whole process: a
 * program that embeds libholdfast initialises libcurl itself (holdfast/host.h).
 */
#include "base/http/global.h"

#include <curl/curl.h>
#include <errno.h>

int hf__http_global_init(void) {
        return curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK ? 0 : -ENOMEM;
}
