/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The bearer token of a REST client: either a text that never changes, or a file that another
 * program rewrites. The kubelet, for example, rewrites it long before the old token expires. */
#include <stdbool.h>

#include <holdfast/host.h>

struct hf__bearer; /* the source of tokens */
struct hf__token;  /* one token; reference-counted, immutable */
struct hf__http_engine;
struct hf_status;

/* Creates a source from the file `path` (which is read here and must contain a token), else from
 * `text`; both NULL = no token. Both are copied. Returns 0, -errno or HF_E_INVALID, with the reason
 * in reterr_status. */
int hf__bearer_new(const struct hf_host *host, const char *text, const char *path,
                   struct hf__bearer **ret_bearer, struct hf_status *reterr_status);
/* Sets the engine whose thread reads the file again; borrowed. Must be called before the first
 * request. */
void hf__bearer_attach(struct hf__bearer *bearer, struct hf__http_engine *engine);
/* Frees the source. The engine must have been freed before. Accepts NULL; returns NULL. */
struct hf__bearer *hf__bearer_free(struct hf__bearer *bearer);

/* Returns a reference to the token for a new request; NULL = none. If the file was read a minute or
 * more ago, schedules another reading, which serves later requests. Thread: any. Never blocks. */
struct hf__token *hf__bearer_get(struct hf__bearer *bearer);
const char *hf__token_header(const struct hf__token *token); /* "Authorization: Bearer ..." */
struct hf__token *hf__token_unref(struct hf__token *token);  /* accepts NULL, returns NULL */

/* Called after the server rejected a request with the token `used` (401). If `used` is still the
 * newest token, reads the file again, but at most once a second. Returns whether there is a newer
 * token now, so that a retry makes sense. Thread: the engine's. */
bool hf__bearer_renew(struct hf__bearer *bearer, const struct hf__token *used);
