/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch-load URL CA CERT KEY WATCHES CONNECTIONS: opens many watches of a URL over a few HTTP/2
 * connections, and measures how long each event takes.
 *
 * The writer puts a CLOCK_MONOTONIC time into the object, as `"stamp":"<ns>"`. When all watches are
 * open, "open" is printed. When stdin ends, one line of JSON: the number of events, the median, the
 * 99th percentile and the maximum of their times in ms, the CPU of this process since "open" in ms,
 * and for each of the first N_WRITES writes, in the order in which a watch saw them first, the time
 * of the last watch that had its event.
 *
 * nghttp2 and OpenSSL directly: with libcurl, which visits all of its handles for each event, the
 * client took twice the CPU of the server that it measures, on the same cores.
 */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <nghttp2/nghttp2.h>
#include <openssl/ssl.h>

#define N_WRITES 256 /* the most for which the last watch is shown */
#define IN_SPACE 65536

struct write_time {
        int64_t stamp;
        double last_ms;
};

static struct {
        double *ms;
        size_t n, space;
        size_t n_open;
        struct write_time writes[N_WRITES];
        size_t n_writes;
} times;

struct connection {
        int fd;
        SSL *ssl;
        nghttp2_session *session;
};

static int64_t clock_ns(clockid_t clock) {
        struct timespec now;

        clock_gettime(clock, &now);
        return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void fail(const char *what) {
        (void)fprintf(stderr, "watch-load: %s\n", what);
        exit(1);
}

/* ---- times ---- */

static void add_write(int64_t stamp, double ms) {
        for (size_t i = times.n_writes; i-- > 0;)
                if (times.writes[i].stamp == stamp) {
                        if (ms > times.writes[i].last_ms)
                                times.writes[i].last_ms = ms;
                        return;
                }
        if (times.n_writes < N_WRITES)
                times.writes[times.n_writes++] = (struct write_time){stamp, ms};
}

static void add_time(double ms) {
        if (times.n == times.space) {
                times.space = times.space ? 2 * times.space : 65536;
                times.ms = realloc(times.ms, times.space * sizeof *times.ms);
                if (!times.ms)
                        fail("out of memory");
        }
        times.ms[times.n++] = ms;
}

static int compare(const void *a, const void *b) {
        double x = *(const double *)a, y = *(const double *)b;

        return (x > y) - (x < y);
}

static void print_times(int64_t cpu_ns) {
        qsort(times.ms, times.n, sizeof *times.ms, compare);
        (void)printf("{\"events\": %zu, \"p50\": %.1f, \"p99\": %.1f, \"max\": %.1f, \"cpu\": "
                     "%.1f, "
                     "\"last\": [",
                     times.n, times.ms[times.n / 2], times.ms[times.n * 99 / 100],
                     times.ms[times.n - 1], (double)cpu_ns / 1e6);
        for (size_t i = 0; i < times.n_writes; i++)
                (void)printf("%s%.1f", i > 0 ? ", " : "", times.writes[i].last_ms);
        (void)puts("]}");
}

/* ---- the callbacks of the sessions ---- */

/* An event is in one DATA frame nearly always; a stamp that is split is not counted. */
static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data,
                   size_t n, void *ctx) {
        static const char mark[] = "\"stamp\":\"";
        const uint8_t *at = data;
        int64_t now = clock_ns(CLOCK_MONOTONIC);

        while ((at = memmem(at, n - (size_t)(at - data), mark, sizeof mark - 1)) != NULL) {
                int64_t stamp = 0;
                for (at += sizeof mark - 1; at < data + n && *at >= '0' && *at <= '9'; at++)
                        stamp = 10 * stamp + (*at - '0');
                if (stamp > 0 && at < data + n) {
                        add_time((double)(now - stamp) / 1e6);
                        add_write(stamp, (double)(now - stamp) / 1e6);
                }
        }
        return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t n_name, const uint8_t *value, size_t n_value, uint8_t flags,
                     void *ctx) {
        if (n_name != 7 || memcmp(name, ":status", 7) != 0)
                return 0;
        if (n_value != 3 || memcmp(value, "200", 3) != 0)
                fail("a watch was refused");
        times.n_open++;
        return 0;
}

static int on_close(nghttp2_session *session, int32_t id, uint32_t error, void *ctx) {
        fail("a watch has ended");
        return 0;
}

/* ---- connections ---- */

static void flush(struct connection *c) {
        const uint8_t *data;
        ssize_t n;

        while ((n = nghttp2_session_mem_send(c->session, &data)) > 0)
                for (ssize_t done = 0; done < n;) {
                        int written = SSL_write(c->ssl, data + done, (int)(n - done));
                        struct pollfd out = {.fd = c->fd, .events = POLLOUT};
                        if (written > 0)
                                done += written;
                        else if (SSL_get_error(c->ssl, written) == SSL_ERROR_WANT_WRITE)
                                (void)poll(&out, 1, -1);
                        else
                                fail("a connection has ended");
                }
}

static void serve(struct connection *c) {
        static uint8_t in[IN_SPACE];
        int n;

        while ((n = SSL_read(c->ssl, in, sizeof in)) > 0)
                if (nghttp2_session_mem_recv(c->session, in, (size_t)n) != n)
                        fail("a frame is not valid");
        if (SSL_get_error(c->ssl, n) != SSL_ERROR_WANT_READ)
                fail("a connection has ended");
        flush(c);
}

static int dial(const char *host, const char *port) {
        struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;

        if (getaddrinfo(host, port, &hints, &found) != 0)
                fail("the host is not known");
        int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0 || connect(fd, found->ai_addr, found->ai_addrlen) != 0)
                fail("no connection");
        freeaddrinfo(found);
        return fd;
}

static void open_session(struct connection *c) {
        nghttp2_session_callbacks *callbacks;

        if (nghttp2_session_callbacks_new(&callbacks) != 0)
                fail("out of memory");
        nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
        nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
        nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
        if (nghttp2_session_client_new(&c->session, callbacks, c) != 0 ||
            nghttp2_submit_settings(c->session, NGHTTP2_FLAG_NONE, NULL, 0) != 0 ||
            nghttp2_session_set_local_window_size(c->session, NGHTTP2_FLAG_NONE, 0, 1 << 24) != 0)
                fail("out of memory");
        nghttp2_session_callbacks_del(callbacks);
}

static void open_connection(struct connection *c, SSL_CTX *tls, const char *host,
                            const char *port) {
        c->fd = dial(host, port);
        c->ssl = SSL_new(tls);
        if (!c->ssl || SSL_set_fd(c->ssl, c->fd) != 1 || SSL_connect(c->ssl) != 1)
                fail("the TLS handshake has failed");
        (void)fcntl(c->fd, F_SETFL, O_NONBLOCK);
        open_session(c);
}

static nghttp2_nv header(const char *name, const char *value) {
        return (nghttp2_nv){(uint8_t *)name, (uint8_t *)value, strlen(name), strlen(value),
                            NGHTTP2_NV_FLAG_NONE};
}

static void open_watches(struct connection *c, size_t n, const char *authority, const char *path) {
        const nghttp2_nv headers[] = {header(":method", "GET"), header(":scheme", "https"),
                                      header(":authority", authority), header(":path", path),
                                      header("accept", "*/*")};

        for (size_t i = 0; i < n; i++)
                if (nghttp2_submit_request(c->session, NULL, headers,
                                           sizeof headers / sizeof headers[0], NULL, NULL) < 0)
                        fail("a watch could not be opened");
        flush(c);
}

static SSL_CTX *make_tls(char **argv) {
        static const unsigned char alpn[] = "\2h2";
        SSL_CTX *tls = SSL_CTX_new(TLS_client_method());

        if (!tls || SSL_CTX_load_verify_locations(tls, argv[2], NULL) != 1 ||
            SSL_CTX_use_certificate_chain_file(tls, argv[3]) != 1 ||
            SSL_CTX_use_PrivateKey_file(tls, argv[4], SSL_FILETYPE_PEM) != 1 ||
            SSL_CTX_set_alpn_protos(tls, alpn, sizeof alpn - 1) != 0)
                fail("the certificates cannot be used");
        SSL_CTX_set_verify(tls, SSL_VERIFY_PEER, NULL);
        return tls;
}

/* False: stdin has ended. */
static bool serve_once(int epoll) {
        struct epoll_event events[64];
        int n = epoll_wait(epoll, events, 64, -1);

        for (int i = 0; i < n; i++) {
                if (!events[i].data.ptr)
                        return false;
                serve(events[i].data.ptr);
        }
        return n >= 0 || errno == EINTR;
}

/* Splits "https://HOST:PORT/PATH" in place. */
static void parse_url(char *url, char **ret_authority, char **ret_host, char **ret_port,
                      char **ret_path) {
        char *host = strncmp(url, "https://", 8) == 0 ? url + 8 : NULL;
        char *slash = host ? strchr(host, '/') : NULL, *colon = host ? strchr(host, ':') : NULL;

        if (!slash || !colon || colon > slash)
                fail("the URL must be https://HOST:PORT/PATH");
        *ret_path = strdup(slash);
        *slash = '\0';
        *ret_authority = strdup(host);
        *colon = '\0';
        *ret_host = host;
        *ret_port = colon + 1;
        if (!*ret_path || !*ret_authority)
                fail("out of memory");
}

int main(int argc, char **argv) {
        struct epoll_event event = {.events = EPOLLIN};
        char *authority, *host, *port, *path;

        if (argc != 7) {
                (void)fprintf(stderr, "watch-load: see the head of its source\n");
                return 2;
        }
        size_t n = strtoul(argv[5], NULL, 10), n_connections = strtoul(argv[6], NULL, 10);
        parse_url(argv[1], &authority, &host, &port, &path);
        SSL_CTX *tls = make_tls(argv);
        struct connection *connections = calloc(n_connections, sizeof *connections);
        int epoll = epoll_create1(EPOLL_CLOEXEC);
        if (!connections || epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, STDIN_FILENO, &event) != 0)
                fail("no epoll");
        for (size_t i = 0; i < n_connections; i++) {
                struct connection *c = &connections[i];
                open_connection(c, tls, host, port);
                open_watches(c, n / n_connections + (i < n % n_connections), authority, path);
                event.data.ptr = c;
                if (epoll_ctl(epoll, EPOLL_CTL_ADD, c->fd, &event) != 0)
                        fail("no epoll");
        }
        while (times.n_open < n && serve_once(epoll))
                ;
        times.n = times.n_writes = 0; /* the initial events */
        int64_t cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
        (void)printf("open\n");
        (void)fflush(stdout);
        while (serve_once(epoll))
                ;
        if (times.n == 0)
                return 1;
        print_times(clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu);
        return 0;
}
