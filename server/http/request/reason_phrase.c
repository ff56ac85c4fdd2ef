/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reason phrases of HTTP status codes, as RFC 9110 and RFC 6585 name them.
 *
 * Invariant: every code gets a phrase, also one that is not in the table, because some clients take
 * a status line without a phrase for malformed.
 */
#include "server/http/request/reason_phrase.h"

#include <stddef.h>

const char *hfd_reason_phrase(int code) {
        static const struct {
                int code;
                const char *phrase;
        } phrases[] = {{100, "Continue"},
                       {200, "OK"},
                       {201, "Created"},
                       {202, "Accepted"},
                       {204, "No Content"},
                       {301, "Moved Permanently"},
                       {302, "Found"},
                       {304, "Not Modified"},
                       {307, "Temporary Redirect"},
                       {400, "Bad Request"},
                       {401, "Unauthorized"},
                       {403, "Forbidden"},
                       {404, "Not Found"},
                       {405, "Method Not Allowed"},
                       {406, "Not Acceptable"},
                       {408, "Request Timeout"},
                       {409, "Conflict"},
                       {410, "Gone"},
                       {413, "Content Too Large"},
                       {415, "Unsupported Media Type"},
                       {417, "Expectation Failed"},
                       {422, "Unprocessable Content"},
                       {429, "Too Many Requests"},
                       {431, "Request Header Fields Too Large"},
                       {500, "Internal Server Error"},
                       {501, "Not Implemented"},
                       {503, "Service Unavailable"},
                       {504, "Gateway Timeout"},
                       {505, "HTTP Version Not Supported"}};

        for (size_t i = 0; i < sizeof phrases / sizeof phrases[0]; i++)
                if (phrases[i].code == code)
                        return phrases[i].phrase;
        return "Status";
}
