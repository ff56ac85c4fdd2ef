/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /debug/leader responds with one JSON object for people, tests and `holdfastd status`.
 * bootSeconds and freeAtBootSeconds are times of this machine's boot clock, so they cannot be
 * compared with those of another machine. The other seconds are durations.
 *
 * Invariant: the handler does not block, because it runs on an HTTP worker. It formats a snapshot
 * of the elector. mayAct is read after the snapshot, so it may contradict the state in the
 * snapshot.
 */
#include "server/debug_leader.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/strbuf.h"
#include "server/server.h"

#define SECONDS(nsec) ((double)(nsec) / 1e9)

static const char *state_name(enum hf_leader_state state) {
        static const char *const names[] =
                {[HF_FOLLOWING] = "following", [HF_LEADING] = "leading",
                 [HF_DRAINING] = "draining",   [HF_ABORTING] = "aborting",
                 [HF_RELEASING] = "releasing", [HF_STOPPED] = "stopped",
                 [HF_STUCK] = "stuck"};

        assert((size_t)state < sizeof names / sizeof names[0]);
        return names[state];
}

static const char *json_bool(bool value) { return value ? "true" : "false"; }

static void add_string(struct hf__strbuf *s, const char *key, const char *value) {
        hf__strbuf_printf(s, "\"%s\":", key);
        hf__strbuf_json(s, value, strlen(value));
        hf__strbuf_putc(s, ',');
}

static void format_leader(struct hfd_server *server, struct hf__strbuf *s) {
        struct hf_leader_info info = {.size = sizeof info};
        char lease[sizeof info.ns + sizeof info.name + 1];
        hf_nsec now = hfd_server_now(server);

        hf_elector_info(server->elector, &info);
        hf_nsec valid = info.valid_until > now ? info.valid_until - now : 0;
        (void)snprintf(lease, sizeof lease, "%s/%s", info.ns, info.name);
        hf__strbuf_putc(s, '{');
        add_string(s, "lease", lease);
        add_string(s, "identity", info.identity);
        add_string(s, "endpoint", server->identity.endpoint);
        add_string(s, "state", state_name(info.state));
        add_string(s, "holder", info.holder);
        add_string(s, "lastEnd", info.last_end);
        hf__strbuf_printf(s, "\"term\":%llu,\"termsLed\":%llu,", (unsigned long long)info.term,
                          (unsigned long long)info.n_terms);
        hf__strbuf_printf(s, "\"sinceSeconds\":%.3f,\"validSeconds\":%.3f,\"mayAct\":%s,",
                          SECONDS(now - info.since), SECONDS(valid),
                          json_bool(hf_elector_may_act(server->elector)));
        hf__strbuf_printf(s, "\"lockSilenceSeconds\":%.3f,\"identityTaken\":%s,",
                          SECONDS(now - info.heard_at), json_bool(info.identity_taken));
        hf__strbuf_printf(s, "\"bootSeconds\":%.6f,\"freeAtBootSeconds\":%.6f}\n", SECONDS(now),
                          SECONDS(info.free_at));
}

void hfd_debug_leader_handle(void *ctx, struct hfd_http_request *request) {
        struct hfd_server *server = ctx;
        struct hf__strbuf s = {0};

        assert(server->elector); /* the HTTP server starts after the elector was created */
        format_leader(server, &s);
        struct hf__buf *body = hf__strbuf_to_buf(&s); /* NULL = out of memory */
        hfd_http_request_reply(request, body ? 200 : 500, "application/json", NULL, 0, body);
        hf__buf_unref(body);
        hfd_http_request_unref(request);
        hf__strbuf_done(&s);
}
