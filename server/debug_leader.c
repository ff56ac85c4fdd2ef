/* SPDX-License-Identifier: Apache-2.0 */
/* /debug/leader: what this instance knows of the leadership, as JSON. All times are in seconds by
 * this instance's boot clock. */
#include <string.h>

#include "base/strbuf.h"
#include "server/server.h"

static void add_string(struct hf__strbuf *s, const char *key, const char *value) {
        hf__strbuf_printf(s, "\"%s\":", key);
        hf__strbuf_json(s, value, strlen(value));
        hf__strbuf_putc(s, ',');
}

void hfd_debug_leader(void *host, struct hfd_http_request *request) {
        static const char *const states[] = {"following", "leading", "draining", "aborting",
                                             "releasing", "stopped", "stuck"};
        struct hfd_server *server = host;
        struct hf_leader_info info;
        struct hf__strbuf s = {0};
        hf_nsec now = hf_now(hf_host_clock(&server->host));

        hf_elector_info(server->elector, &info);
        hf__strbuf_putc(&s, '{');
        add_string(&s, "lease", info.ns);
        s.n -= 2; /* "ns" and then "/name" in one string */
        hf__strbuf_printf(&s, "/%s\",", info.name);
        add_string(&s, "identity", info.identity);
        add_string(&s, "endpoint", server->identity.endpoint);
        add_string(&s, "state", states[info.state]);
        add_string(&s, "holder", info.holder);
        add_string(&s, "lastEnd", info.last_end);
        hf__strbuf_printf(&s,
                          "\"term\":%llu,\"termsLed\":%llu,\"sinceSeconds\":%.3f,\"validSeconds\":%"
                          ".3f,\"mayAct\":%s,"
                          "\"lockSilenceSeconds\":%.3f,\"identityTaken\":%s,\"bootSeconds\":%.6f,"
                          "\"freeAtBootSeconds\":%.6f}\n",
                          (unsigned long long)info.term, (unsigned long long)info.n_terms,
                          (double)(now - info.since) / 1e9,
                          info.valid_until > now ? (double)(info.valid_until - now) / 1e9 : 0.0,
                          hf_elector_may_act(server->elector) ? "true" : "false",
                          (double)(now - info.heard_at) / 1e9,
                          info.identity_taken ? "true" : "false", (double)now / 1e9,
                          (double)info.free_at / 1e9);
        struct hf__buf *body = hf__strbuf_to_buf(&s);
        hfd_http_request_reply(request, body ? 200 : 500, "application/json", NULL, 0, body);
        hf__buf_unref(body);
        hfd_http_request_unref(request);
        hf__strbuf_done(&s);
}
