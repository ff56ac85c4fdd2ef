/* SPDX-License-Identifier: Apache-2.0 */
/* Each allocation of the etcd store fails once: the operation is refused, or it ends with one
 * callback, and no memory leaks. */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "failing_memory.h"
#include "held_etcd.h"
#include "server/storage/rpc.pb-c.h"
#include "time_units.h"

static unsigned n_events, n_ends;

static void on_event(void *ctx, const struct hfd_watch_event *events, size_t n) {
        n_events += (unsigned)n;
}
static void on_end(void *ctx, int error, const struct hf_status *status) { n_ends++; }

/* The callback is called once if the operation was begun, and never if it was refused. */
static void expect_reply(int r) {
        if (r == 0)
                held_etcd_respond(5);
        assert(r == 0 || r == -ENOMEM);
        assert(held_etcd.n_replies == (r == 0 ? 1 : 0));
        if (r == 0)
                assert(held_etcd.error == -ENOMEM ||
                       (held_etcd.error == 0 && held_etcd.revision == 5));
        held_etcd.n_replies = 0;
}

static void send_event(const struct hfd_grpc_request *request) {
        Hfd__ResponseHeader header = HFD__RESPONSE_HEADER__INIT;
        Hfd__KeyValue kv = HFD__KEY_VALUE__INIT;
        Hfd__Event event = HFD__EVENT__INIT, *events[] = {&event};
        Hfd__WatchResponse response = HFD__WATCH_RESPONSE__INIT;
        uint8_t data[200];

        header.revision = 7;
        kv.key = (ProtobufCBinaryData){2, (uint8_t *)"/a"};
        kv.value = (ProtobufCBinaryData){1, (uint8_t *)"1"};
        kv.mod_revision = kv.create_revision = 7;
        event.kv = &kv;
        response.header = &header;
        response.events = events;
        response.n_events = 1;
        size_t n = protobuf_c_message_pack(&response.base, data);
        int r = request->on_message(request->ctx, (const char *)data, n);
        assert((r == 0) == (n_events == 1));
}

static void use_watch(struct hfd_store *store) {
        static const struct hfd_watch_handler handler = {.event = on_event, .end = on_end};
        uint64_t id = 0;

        n_events = n_ends = 0;
        int r = store->ops->watch(store, "/a", "/b", 3, &handler, NULL, &id);
        assert(r == 0 || r == -ENOMEM);
        if (r != 0)
                return;
        const struct hfd_grpc_request request = held_etcd_latest()->request;
        assert(request.body && request.probe);
        send_event(&request);
        held_etcd_fail(HF_E_CANCELED);
        request.on_release(request.ctx);
        assert(n_ends == 1);
}

static void life(int n) {
        static const char *const urls[] = {"http://127.0.0.1:1", NULL};
        static const struct hfd_op op = {.kind = HFD_DELETE, .key = "/x"};
        const struct hfd_txn txn = {.ops = &op, .n_ops = 1};
        struct hfd_store *store = NULL;

        held_etcd_reset();
        failing_memory_arm(n);
        int r = hfd_etcd_store_new(&held_etcd_host, &(struct hfd_etcd_config){.endpoints = urls},
                                   &store, &held_etcd.status);
        assert(r == 0 || r == -ENOMEM);
        if (r != 0)
                return;
        held_etcd.store = store;
        expect_reply(held_etcd_get(false));
        expect_reply(store->ops->list(store, "/a/", NULL, 0, 0, false, held_etcd_now + SEC,
                                      held_etcd_on_reply, NULL));
        r = store->ops->txn(store, &txn, held_etcd_now + SEC, held_etcd_on_reply, NULL);
        assert(r == 0 || r == -ENOMEM);
        if (r == 0)
                held_etcd_fail(HF_E_TIMEOUT);
        assert(held_etcd.n_replies == (r == 0 ? 1 : 0));
        use_watch(store);
        held_etcd.store->ops->stop(store);
        assert(held_etcd_get(false) != 0);
        static const struct hfd_watch_handler handler = {.event = on_event, .end = on_end};
        assert(store->ops->watch(store, "/a", "/b", 3, &handler, NULL, NULL) != 0);
        held_etcd_close();
}

static void test_operations_are_done_or_refused(void **state) { failing_memory_try_all(life, 10); }

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_operations_are_done_or_refused),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
