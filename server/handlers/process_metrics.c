/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The metrics process_*, with the names of Prometheus' client libraries.
 *
 * Invariants: a collector updates them at each scrape, so nothing runs between scrapes; only the
 * start time is set once. If a source cannot be read, its metrics keep their previous values. Two
 * scrapes may run at the same time.
 */
#include "server/handlers/process_metrics.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <holdfast/metrics.h>

#include "base/cleanup.h"
#include "base/thread.h"

struct hfd_process_metrics {
        /* immutable */
        struct hf_metrics *registry; /* borrowed; NULL = there is no collector */
        struct hf_metric *resident, *virtual, *cpu, *open_fds, *max_fds;

        pthread_mutex_t mu; /* guards cpu_counted: two scrapes may run at the same time */
        double cpu_counted; /* seconds added so far, because a counter can only be increased */
};

static void collect_memory(struct hfd_process_metrics *metrics) {
        unsigned long long pages = 0, resident_pages = 0;
        FILE *file = fopen("/proc/self/statm", "re");
        if (!file)
                return;
        if (fscanf(file, "%llu %llu", &pages, &resident_pages) == 2) {
                double page = (double)sysconf(_SC_PAGESIZE);
                hf_metric_set(metrics->virtual, (double)pages * page);
                hf_metric_set(metrics->resident, (double)resident_pages * page);
        }
        (void)fclose(file);
}

static void collect_fds(struct hfd_process_metrics *metrics) {
        struct rlimit limit;
        size_t n = 0;
        DIR *dir = opendir("/proc/self/fd");
        if (dir) {
                for (struct dirent *entry; (entry = readdir(dir));)
                        n += entry->d_name[0] != '.';
                (void)closedir(dir);
                assert(n > 0); /* includes the descriptor of the directory, which is not counted */
                hf_metric_set(metrics->open_fds, (double)(n - 1));
        }
        if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
                hf_metric_set(metrics->max_fds, (double)limit.rlim_cur);
}

static void collect_cpu(struct hfd_process_metrics *metrics) {
        struct timespec spent;
        if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent) != 0)
                return;
        double seconds = (double)spent.tv_sec + (double)spent.tv_nsec / 1e9;
        pthread_mutex_lock(&metrics->mu);
        if (seconds > metrics->cpu_counted) {
                hf_metric_add(metrics->cpu, seconds - metrics->cpu_counted);
                metrics->cpu_counted = seconds;
        }
        pthread_mutex_unlock(&metrics->mu);
}

/* The collector. Thread: the one that handles the scrape. */
static void collect_metrics(void *ctx) {
        struct hfd_process_metrics *metrics = ctx;
        collect_memory(metrics);
        collect_fds(metrics);
        collect_cpu(metrics);
}

/*
 * Reads how many seconds after boot the process started; negative = unknown. This is field 22 of
 * /proc/self/stat, in clock ticks. Field 2, the program's name in parentheses, may itself contain
 * spaces and parentheses, so fields are counted from its end.
 */
static double read_start_time(void) {
        char text[1024] = "";
        unsigned long long ticks = 0;
        FILE *file = fopen("/proc/self/stat", "re");
        if (!file)
                return -1;
        size_t n = fread(text, 1, sizeof text - 1, file);
        (void)fclose(file);
        text[n] = '\0';
        const char *at = strrchr(text, ')');
        for (int field = 2; at && field < 22; field++)
                at = strchr(at + 1, ' ');
        if (!at || sscanf(at, " %llu", &ticks) != 1)
                return -1;
        return (double)ticks / (double)sysconf(_SC_CLK_TCK);
}

/* Set once and not by the collector, because the start time never changes. */
void hfd_process_metrics_add_start_time(struct hf_metrics *metrics, const struct hf_clock *clock) {
        double start_s = read_start_time();
        double boot_s = (double)(clock->real(clock->ctx) - clock->boot(clock->ctx)) / 1e9;

        if (start_s >= 0)
                hf_metric_set(hf_metrics_get(metrics, HF_METRIC_GAUGE, "process_start_time_seconds",
                                             "Start time of the process since unix epoch in "
                                             "seconds.",
                                             ""),
                              boot_s + start_s);
}

HF__CLEANUP_DEFINE(metrics_cleanup, struct hfd_process_metrics *, hfd_process_metrics_free)

int hfd_process_metrics_new(const struct hf_host *host, struct hfd_process_metrics **ret_metrics) {
        HF__CLEANUP(hf__free_cleanup)
        struct hfd_process_metrics *memory = calloc(1, sizeof *memory);
        if (!memory)
                return -ENOMEM;
        int r = hf__mutex_init(&memory->mu);
        if (r != 0)
                return r;
        HF__CLEANUP(metrics_cleanup) struct hfd_process_metrics *metrics = HF__TAKE(memory);
        metrics->resident =
                hf_metrics_get(host->metrics, HF_METRIC_GAUGE, "process_resident_memory_bytes",
                               "Resident memory size in bytes.", "");
        metrics->virtual = hf_metrics_get(host->metrics, HF_METRIC_GAUGE,
                                          "process_virtual_memory_bytes",
                                          "Virtual memory size in bytes.", "");
        metrics->cpu = hf_metrics_get(host->metrics, HF_METRIC_COUNTER, "process_cpu_seconds_total",
                                      "Total user and system CPU time spent in seconds.", "");
        metrics->open_fds = hf_metrics_get(host->metrics, HF_METRIC_GAUGE, "process_open_fds",
                                           "Number of open file descriptors.", "");
        metrics->max_fds = hf_metrics_get(host->metrics, HF_METRIC_GAUGE, "process_max_fds",
                                          "Maximum number of open file descriptors.", "");
        hfd_process_metrics_add_start_time(host->metrics, hf_host_clock(host));
        r = host->metrics ? hf_metrics_add_collector(host->metrics, collect_metrics, metrics) : 0;
        if (r != 0)
                return r;
        metrics->registry = host->metrics; /* from here on there is a collector to remove */
        *ret_metrics = HF__TAKE(metrics);
        return 0;
}

struct hfd_process_metrics *hfd_process_metrics_free(struct hfd_process_metrics *metrics) {
        if (!metrics)
                return NULL;
        if (metrics->registry)
                hf_metrics_remove_collector(metrics->registry, collect_metrics, metrics);
        pthread_mutex_destroy(&metrics->mu);
        free(metrics);
        return NULL;
}
