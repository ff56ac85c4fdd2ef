/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints and parses continue tokens.
 *
 * Invariant: the path that the parser returns never leaves the resource, although a client may send
 * anything as a token. Otherwise a user could read the keys of a kind that the user may not list.
 */
#include "server/registry/list/continue_token.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "base/json.h"
#include "base/strbuf.h"

#define CONTINUE_END "\\u0000\"}"
#define TOKEN_MAX    2048 /* bytes; the token of the longest path, with escapes, is shorter */

void hfd_continue_token_append(struct hf__strbuf *out, uint64_t revision, const char *path) {
        struct hf__strbuf json = {0};

        hf__strbuf_printf(&json, "{\"v\":\"meta.k8s.io/v1\",\"rv\":%" PRId64 ",\"start\":",
                          (int64_t)revision);
        hf__strbuf_json(&json, path, strlen(path));
        if (!json.error)
                json.n--; /* drop the closing quote, which CONTINUE_END contains */
        hf__strbuf_puts(&json, CONTINUE_END);
        if (!json.error)
                hf__base64url_encode(out, json.data, json.n);
        else if (!out->error)
                out->error = json.error;
        hf__strbuf_done(&json);
}

/* Whether a part of the path is "..". */
static bool has_dot_dot_segment(const char *path) {
        for (size_t n; *path; path += n + (path[n] == '/')) {
                n = strcspn(path, "/");
                if (n == 2 && memcmp(path, "..", 2) == 0)
                        return true;
        }
        return false;
}

bool hfd_continue_token_parse(const char *token, uint64_t *ret_revision, char *path, size_t space) {
        char json[HF__BASE64URL_DECODED_MAX(TOKEN_MAX) + 1];
        size_t n, n_token = strlen(token);
        int64_t revision;
        struct hf__json *tree = NULL;

        if (n_token > TOKEN_MAX || !hf__base64url_decode(token, n_token, json, &n))
                return false;
        json[n] = '\0';
        /*
         * Before parsing, cut off the escaped NUL that follows the path, because the parser refuses
         * a NUL in a string. So the parser also refuses a NUL elsewhere in the path.
         */
        size_t n_end = sizeof CONTINUE_END - 1;
        if (n < n_end || memcmp(json + n - n_end, CONTINUE_END, n_end) != 0)
                return false;
        memcpy(json + n - n_end, "\"}", 3);
        if (hf__json_parse(json, strlen(json), &tree, NULL))
                return false;
        const char *start = hf__json_string(tree, "start"), *version = hf__json_string(tree, "v");
        bool good = version && strcmp(version, "meta.k8s.io/v1") == 0 &&
                    hf__json_i64(tree, "rv", &revision) && start && strlen(start) < space &&
                    !has_dot_dot_segment(start) && *start != '/';
        if (good) {
                (void)snprintf(path, space, "%s", start);
                *ret_revision = revision > 0 ? (uint64_t)revision : 0;
        }
        hf__json_free(tree);
        return good;
}
