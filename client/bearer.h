/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The bearer token of a REST client: a text that never changes, or a file that somebody else
 * rewrites (the kubelet does, long before the token in it runs out).
 */
#include <stdbool.h>

#include <holdfast/host.h>

struct hf__bearer; /* the source */
struct hf__token;  /* one reading of it; counted references, never changes */
struct hf__http_engine;
struct hf_status;

/*
 * path (read here once; it must have a token) or text; both NULL = no token. engine does the later
 * readings; it is borrowed, and set by hf__bearer_attach before the first call. 0, -errno,
 * HF_E_INVALID; with words.
 */
int hf__bearer_new(const struct hf_host *host, const char *text, const char *path,
                   struct hf__bearer **ret_bearer, struct hf_status *reterr_status);
void hf__bearer_attach(struct hf__bearer *bearer, struct hf__http_engine *engine);
struct hf__bearer *hf__bearer_free(struct hf__bearer *bearer); /* after the engine; accepts NULL */

/* The token for a request that begins now; NULL = none. A file's reading of a minute ago is renewed
 * for the next. Never blocks. */
struct hf__token *hf__bearer_get(struct hf__bearer *bearer);
const char *hf__token_header(const struct hf__token *token); /* "Authorization: Bearer ..." */
struct hf__token *hf__token_unref(struct hf__token *token);  /* accepts NULL, returns NULL */

/*
 * The server said 401 to a request with `used`. Reads the file again, at most once a second. True
 * when there is another token now: the request is worth another try. Engine's thread.
 */
bool hf__bearer_refused(struct hf__bearer *bearer, const struct hf__token *used);
