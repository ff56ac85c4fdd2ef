/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch-load URL CA CERT KEY WATCHES CONNECTIONS: opens many watches of a URL over a few HTTP/2
 * connections, and measures how long each event takes.
 *
 * The writer puts a CLOCK_MONOTONIC time into the object, as `"stamp":"<ns>"`. When all watches are
 * open, "open" is printed. When stdin ends, one line of JSON: the number of events, the median, the
 * 99th percentile and the maximum of their times in ms, and for each of the first N_WRITES writes,
 * in the order in which a watch saw them first, the time of the last watch that had its event.
 */
#include <curl/curl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define N_WRITES 256 /* the most for which the last watch is shown */

struct write_time {
        int64_t stamp;
        double last_ms;
};

struct times {
        double *ms;
        size_t n, space;
        size_t n_open;
        struct write_time writes[N_WRITES];
        size_t n_writes;
};

struct watch {
        struct times *times;
};

static int64_t now_ns(void) {
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void add_write(struct times *times, int64_t stamp, double ms) {
        for (size_t i = times->n_writes; i-- > 0;)
                if (times->writes[i].stamp == stamp) {
                        if (ms > times->writes[i].last_ms)
                                times->writes[i].last_ms = ms;
                        return;
                }
        if (times->n_writes < N_WRITES)
                times->writes[times->n_writes++] = (struct write_time){stamp, ms};
}

static void add_time(struct times *times, double ms) {
        if (times->n == times->space) {
                times->space = times->space ? 2 * times->space : 65536;
                times->ms = realloc(times->ms, times->space * sizeof *times->ms);
                if (!times->ms)
                        abort();
        }
        times->ms[times->n++] = ms;
}

/* An event arrives in one call nearly always; a stamp that is split is not counted. */
static size_t on_data(char *data, size_t size, size_t n, void *ctx) {
        static const char mark[] = "\"stamp\":\"";
        struct watch *watch = ctx;
        int64_t now = now_ns();
        size_t n_bytes = size * n, n_mark = sizeof mark - 1;
        char *at = data;

        while ((at = memmem(at, n_bytes - (size_t)(at - data), mark, n_mark)) != NULL) {
                at += n_mark;
                int64_t stamp = strtoll(at, NULL, 10);
                if (stamp > 0) {
                        add_time(watch->times, (double)(now - stamp) / 1e6);
                        add_write(watch->times, stamp, (double)(now - stamp) / 1e6);
                }
        }
        return n_bytes;
}

static size_t on_header(char *data, size_t size, size_t n, void *ctx) {
        struct watch *watch = ctx;

        if (n >= 10 && strncmp(data, "HTTP/2 200", 10) == 0)
                watch->times->n_open++;
        return size * n;
}

static CURL *open_watch(char **argv, struct watch *watch) {
        CURL *easy = curl_easy_init();

        if (!easy)
                abort();
        curl_easy_setopt(easy, CURLOPT_URL, argv[1]);
        curl_easy_setopt(easy, CURLOPT_CAINFO, argv[2]);
        curl_easy_setopt(easy, CURLOPT_SSLCERT, argv[3]);
        curl_easy_setopt(easy, CURLOPT_SSLKEY, argv[4]);
        curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
        curl_easy_setopt(easy, CURLOPT_PIPEWAIT, 1L);
        curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, 4096L);
        curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_data);
        curl_easy_setopt(easy, CURLOPT_WRITEDATA, watch);
        curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
        curl_easy_setopt(easy, CURLOPT_HEADERDATA, watch);
        return easy;
}

static int compare(const void *a, const void *b) {
        double x = *(const double *)a, y = *(const double *)b;

        return (x > y) - (x < y);
}

/* False: stdin has ended. */
static bool poll_once(CURLM *multi) {
        struct curl_waitfd in = {.fd = STDIN_FILENO, .events = CURL_WAIT_POLLIN};
        int running;

        curl_multi_perform(multi, &running);
        curl_multi_poll(multi, &in, 1, 50, NULL);
        return in.revents == 0;
}

int main(int argc, char **argv) {
        struct times times = {0};

        if (argc != 7) {
                (void)fprintf(stderr, "watch-load: see the head of its source\n");
                return 2;
        }
        size_t n = strtoul(argv[5], NULL, 10), n_connections = strtoul(argv[6], NULL, 10);
        curl_global_init(CURL_GLOBAL_ALL);
        CURLM *multi = curl_multi_init();
        struct watch *watches = calloc(n, sizeof *watches);
        if (!multi || !watches)
                abort();
        curl_multi_setopt(multi, CURLMOPT_MAX_CONCURRENT_STREAMS, (long)(n / n_connections));
        curl_multi_setopt(multi, CURLMOPT_MAX_HOST_CONNECTIONS, (long)n_connections);
        for (size_t i = 0; i < n; i++) {
                watches[i].times = &times;
                curl_multi_add_handle(multi, open_watch(argv, &watches[i]));
        }
        while (times.n_open < n)
                (void)poll_once(multi);
        times.n = times.n_writes = 0; /* the initial events */
        (void)printf("open\n");
        (void)fflush(stdout);
        while (poll_once(multi))
                ;
        if (times.n == 0)
                return 1;
        qsort(times.ms, times.n, sizeof *times.ms, compare);
        (void)printf("{\"events\": %zu, \"p50\": %.1f, \"p99\": %.1f, \"max\": %.1f, \"last\": [",
                     times.n, times.ms[times.n / 2], times.ms[times.n * 99 / 100],
                     times.ms[times.n - 1]);
        for (size_t i = 0; i < times.n_writes; i++)
                (void)printf("%s%.1f", i > 0 ? ", " : "", times.writes[i].last_ms);
        (void)puts("]}");
        return 0;
}
