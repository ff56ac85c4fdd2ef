/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the files of the HTTP engine share. http_engine.c has the loop, http_engine_lane.c the lanes
 * and their sockets, http_engine_exchange.c one request, http_engine_options.c what it asks of
 * curl, http_engine_answer.c what comes back, http_engine_gate.c who may connect over clear-text
 * HTTP/2, http_tls.c the certificates. Private to base/http_*.c.
 *
 * Everything is the engine thread's, but for what is said to be guarded.
 */
#include <curl/curl.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/http/engine.h"
#include "base/mailbox.h"
#include "base/strbuf.h"
#include "base/timer_heap.h"

struct hf__http_tls {
        atomic_int refs;
        struct curl_blob ca, cert, key; /* data is owned and never changes; NULL = absent */
        char *server_name;
        bool insecure;
};
struct hf__http_tls *hf__http_tls_ref(struct hf__http_tls *tls); /* accepts NULL */
CURLcode hf__http_tls_apply(struct hf__http_tls *tls, CURL *easy);

/* What comes through the mailbox. */
enum hf__note_kind { HF__NOTE_SUBMIT, HF__NOTE_CANCEL, HF__NOTE_TIMER, HF__NOTE_STOP };
struct hf__note {
        struct hf__message message;
        enum hf__note_kind kind;
};

/*
 * A lane's connections: one curl multi handle. When a request has timed out on a connection from
 * which not one byte came meanwhile, or while it waited for a connection, the lane takes a new
 * pool, so that no later request goes to that connection; requests under way in the old pool run
 * on, and it is closed after the last of them.
 */
struct hf__pool {
        struct hf__pool *next; /* of the lane; the first takes new requests */
        struct hf__http_engine *engine;
        size_t index; /* in engine->lanes */
        CURLM *multi;
        hf_nsec curl_due; /* when curl wants to be called; HF_NSEC_NEVER = not */
        hf_nsec kick_at;  /* when curl is asked to look again at its connections; HF_NSEC_NEVER =
                             need not */
        uint64_t n_moved; /* headers and pieces of bodies it has passed on */
        size_t n_active;
        long max_connections; /* to one origin; 0 = no limit, which is also what it begins with */
        bool unlimited, restart_waiting;
        /* of clear-text HTTP/2: see http_engine_gate.c */
        bool h2c_up, h2c_guard_moved;
        struct hf__exchange *first_requests, *held;
};

/*
 * A URL that recurs. libcurl works for a tenth of a request to take its URL to pieces and put it
 * together again, and as long to forget and to learn the same options; so those are done once per
 * URL, and once per handle.
 */
struct hf__http_url {
        char *text;    /* owned */
        CURLU *parsed; /* owned */
};

/* A handle that no request has. */
struct hf__http_idle {
        CURL *easy;
        const struct hf__http_url
                *url; /* it has the options of the requests to this one; NULL = none are set */
};

/* One request. Submitted -> active (in a pool) -> ended; ended before it was active when there is
 * no time left. */
struct hf__exchange {
        struct hf__note note; /* HF__NOTE_SUBMIT */
        struct hf__timer due; /* the deadline, the head's until it is there, or not_before */
        struct hf__http_engine *engine;
        struct hf__http_tls *tls;        /* a reference of its own */
        struct hf__http_request request; /* its strings and body lie behind the struct, but for
                                            method and headers */
        struct curl_slist *headers;      /* likewise */
        struct curl_slist *connect_to;   /* owned by curl's allocator; NULL = none */
        char *url_override;              /* owned, freed by curl_free; NULL = none */
        uint64_t id;
        hf_nsec head_deadline;
        struct hf__pool *pool;          /* NULL = not active */
        CURL *easy;                     /* likewise */
        const struct hf__http_url *url; /* the engine's; NULL = it does not recur */
        bool may_keep_options;          /* the handle's, for a request of the same URL */
        struct hf__exchange *next,
                **link; /* the engine's list of those taken from the mailbox and not ended */
        /* guarded by engine->mu */
        struct hf__exchange *next_in_bucket;
        struct hf__note cancel_note;
        bool cancel_posted; /* cancel_note is in the mailbox: the memory must outlive it */
        /* what has come */
        int verdict; /* why we ended it ourselves; 0 = we did not */
        bool may_have_sent, resent, head_done, ended;
        bool is_held; /* until request.not_before */
        /* of clear-text HTTP/2: see http_engine_gate.c */
        bool is_h2c, expects_reuse, must_restart;
        int n_restarts;
        struct hf__pool *h2c_guard; /* whose pioneers or held list it is in; NULL = none */
        struct hf__exchange *next_h2c_guard, **link_h2c_guard;
        hf_nsec sent_at;
        int local_port; /* of its connection: the only thing curl tells about that while it is used;
                           0 = not TCP */
        int code;
        int block_code; /* of the header block that is coming in */
        int grpc_status;
        uint32_t retry_after_s;
        char *grpc_message, *fence_echo; /* owned */
        struct hf__strbuf body;
        char error_text[CURL_ERROR_SIZE];
};

#define HF__HTTP_N_BUCKETS 1024
#define HF__HTTP_N_IDLE    64
#define HF__HTTP_N_URLS    32
#define HF__HTTP_N_CORKED  16
#define HF__N_POOLS        (2 * HF__HTTP_N_LANES)

struct hf__socket {
        struct hf__pool *pool; /* NULL = curl does not want it watched */
        hf_nsec last_in;       /* when bytes came last */
        uint32_t watched;      /* the events it is in the epoll set with; 0 = it is not there */
        bool is_connection;    /* and so is closed by hf__lanes_close_socket */
};

/* A connection that gathers what a turn writes (http_engine_lane.c). */
struct hf__corked {
        int fd;
        size_t index; /* its pool's */
};

struct hf__http_engine {
        /* immutable after the start */
        const struct hf_host *host;
        const struct hf_clock *clock;
        pthread_t thread;
        int epoll_fd, timer_fd;
        bool needs_h2c_guard; /* libcurl is one of those for which http_engine_gate.c is there */
        struct hf__mailbox box;
        _Atomic uint64_t iterations; /* any thread */
        /* guarded by mu; mu is taken before box.mu */
        pthread_mutex_t mu;
        bool closed;
        uint64_t last_id;
        struct hf__exchange *buckets[HF__HTTP_N_BUCKETS]; /* by id, from submit until ended */
        /* the engine thread's */
        hf_nsec now;      /* boot time when the loop last woke */
        hf_nsec armed_at; /* what timer_fd is set to; HF_NSEC_NEVER = off */
        bool stopping;
        struct hf__note stop_note;
        struct hf__timer_heap due_exchanges, due_timers;
        struct hf__exchange *exchanges;
        struct hf__pool *lanes[HF__N_POOLS]; /* each lane has a second one for clear-text HTTP/2 */
        struct hf__socket *sockets;          /* by descriptor */
        size_t n_sockets;
        struct hf__corked corked[HF__HTTP_N_CORKED];
        size_t n_corked;
        unsigned stirred; /* a bit for each index of a pool that curl was called for in this turn:
                             something may be gathered */
        struct hf__http_idle idle[HF__HTTP_N_IDLE]; /* handles to use again */
        size_t n_idle;
        struct hf__http_url urls[HF__HTTP_N_URLS];
        size_t n_urls;
};

/* http_engine_lane.c */
int hf__lanes_init(struct hf__http_engine *engine);
void hf__lanes_done(struct hf__http_engine *engine);
void hf__lanes_socket_event(struct hf__http_engine *engine, int fd, uint32_t events);
void hf__lanes_opened(struct hf__http_engine *engine, curl_socket_t fd); /* a connection's socket */
int hf__lanes_close_socket(void *engine, curl_socket_t fd);              /* for curl */
void hf__lanes_cork(struct hf__pool *pool,
                    curl_socket_t fd);                /* of a new connection that will be shared */
void hf__lanes_stir(struct hf__pool *pool);           /* before curl is called for it */
void hf__lanes_flush(struct hf__http_engine *engine); /* before the loop sleeps */
void hf__lanes_run(struct hf__http_engine *engine);   /* calls curl where it is due, ends what is
                                                         done, closes empty old pools */
hf_nsec hf__lanes_due(const struct hf__http_engine *engine);
void hf__lanes_distrust(struct hf__pool *pool);
/* Before a request is added: lets the pool have the connections it needs. shares = the request can
 * share one with others. */
void hf__lanes_make_room(struct hf__pool *pool, bool shares);
void hf__lanes_cannot_share(struct hf__pool *pool); /* an answer says so */

/* http_engine_exchange.c */
struct hf__exchange *hf__exchange_new(struct hf__http_engine *engine,
                                      const struct hf__http_request *request);
void hf__exchange_free(struct hf__exchange *x);
void hf__exchange_start(
        struct hf__exchange *x); /* begins it, or ends it when there is no time left */
void hf__exchange_begin(
        struct hf__exchange *x); /* adds it to its lane, or holds it at the gate, or ends it */
void hf__exchange_restart(struct hf__exchange *x); /* one of which nothing was sent: gives curl's
                                                      handle back, and begins it */
void hf__exchange_set_due(struct hf__exchange *x); /* after head_done has changed */
void hf__exchange_due(
        struct hf__exchange *x); /* its time has come: to begin, if it was held, or to end */
void hf__exchange_curl_done(struct hf__exchange *x, CURLcode result);
void hf__exchange_abort(struct hf__exchange *x, int outcome); /* ends it with outcome */
/* For curl: it has a connection and is about to send. */
int hf__exchange_on_prereq(void *x, char *peer, char *local, int peer_port, int local_port);

/* http_engine_options.c */
CURLcode hf__exchange_take_handle(
        struct hf__exchange
                *x); /* x->easy, with its options, or the error, perhaps with a handle as well */
void hf__exchange_give_handle(struct hf__exchange *x); /* it is in no multi handle any more */
void hf__options_done(
        struct hf__http_engine *engine); /* frees the handles and URLs that are kept */
bool hf__http_shares_connections(
        const struct hf__http_request *request); /* as far as is known before there is one */

/* http_engine_answer.c; for curl */
size_t hf__response_on_header(char *line, size_t size, size_t n, void *x);
size_t hf__response_on_body(char *data, size_t size, size_t n, void *x);

/* http_engine_gate.c */
bool hf__h2c_guard_concerns(const struct hf__http_engine *engine,
                            const struct hf__http_request *request);
bool hf__h2c_guard_holds(
        struct hf__exchange *x,
        struct hf__pool *pool); /* true: it waits for another's; else it is a pioneer itself */
bool hf__h2c_guard_guessed_wrong(
        struct hf__exchange *x);                   /* at on_prereq; true: it must start again */
void hf__h2c_guard_leave(struct hf__exchange *x);  /* accepts one that is in no list */
void hf__h2c_guard_heard(struct hf__pool *pool);   /* bytes came in the pool */
void hf__h2c_guard_release(struct hf__pool *pool); /* when gate_moved: starts those that are held */

/* http_engine.c: takes it off the lists and frees it, or leaves that to the cancel note under way.
 */
void hf__engine_forget(struct hf__http_engine *engine, struct hf__exchange *x);
