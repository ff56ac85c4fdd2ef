/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See etcd_spawn.h. Between fork and exec the child only formats strings and makes system calls,
 * because other threads of the test may hold the locks of the allocator.
 */
#include "etcd_spawn.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define START_TIMEOUT_MS 30000

bool etcd_spawn_available(void) {
        const char *path = getenv("PATH");
        char file[4096];

        while (path && *path) {
                size_t n = strcspn(path, ":");

                (void)snprintf(file, sizeof file, "%.*s/etcd", (int)n, path);
                if (access(file, X_OK) == 0)
                        return true;
                path += n + (path[n] == ':');
        }
        return false;
}

int etcd_spawn_free_port(void) {
        struct sockaddr_in address = {.sin_family = AF_INET,
                                      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t n = sizeof address;
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), port = -1;

        if (fd < 0)
                return -1;
        if (bind(fd, (struct sockaddr *)&address, n) == 0 &&
            getsockname(fd, (struct sockaddr *)&address, &n) == 0)
                port = ntohs(address.sin_port);
        close(fd);
        return port;
}

/*
 * GET /health on the metrics port. etcd serves it with a linearizable read, so it is healthy only
 * when it has a leader.
 */
static bool is_healthy(int port) {
        struct sockaddr_in address = {.sin_family = AF_INET,
                                      .sin_port = htons((uint16_t)port),
                                      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        struct timeval timeout = {.tv_sec = 2};
        const char *get = "GET /health HTTP/1.0\r\n\r\n";
        char response[1024];
        size_t n = 0;
        ssize_t got = 0;
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        if (fd < 0)
                return false;
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
        if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
                got = send(fd, get, strlen(get), MSG_NOSIGNAL);
        while (got > 0 && n < sizeof response - 1) {
                got = recv(fd, response + n, sizeof response - 1 - n, 0);
                n += got > 0 ? (size_t)got : 0;
        }
        close(fd);
        response[n] = '\0';
        return strstr(response, "true") != NULL;
}

struct arguments {
        char *list[32];
        int n;
};

static void add(struct arguments *args, const char *flag, const char *value) {
        args->list[args->n++] = (char *)flag;
        if (value)
                args->list[args->n++] = (char *)value;
        args->list[args->n] = NULL;
}

static void exec_etcd(const struct etcd_spawn *etcd, const char *tls_dir) {
        char peer[64], metrics[64], cluster[80], data[80], ca[512], cert[512], key[512], log[80];
        struct arguments args = {.list = {(char *)"etcd"}, .n = 1};

        (void)snprintf(peer, sizeof peer, "http://127.0.0.1:%d", etcd->peer_port);
        (void)snprintf(metrics, sizeof metrics, "http://127.0.0.1:%d", etcd->metrics_port);
        (void)snprintf(cluster, sizeof cluster, "default=%s", peer);
        (void)snprintf(data, sizeof data, "%s/data", etcd->dir);
        (void)snprintf(log, sizeof log, "%s/log", etcd->dir);
        add(&args, "--data-dir", data);
        add(&args, "--listen-client-urls", etcd->url);
        add(&args, "--advertise-client-urls", etcd->url);
        add(&args, "--listen-peer-urls", peer);
        add(&args, "--initial-advertise-peer-urls", peer);
        add(&args, "--initial-cluster", cluster);
        add(&args, "--listen-metrics-urls", metrics);
        add(&args, "--logger", "zap");
        if (tls_dir) {
                (void)snprintf(ca, sizeof ca, "%s/ca.crt", tls_dir);
                (void)snprintf(cert, sizeof cert, "%s/server.crt", tls_dir);
                (void)snprintf(key, sizeof key, "%s/server.key", tls_dir);
                add(&args, "--cert-file", cert);
                add(&args, "--key-file", key);
                add(&args, "--trusted-ca-file", ca);
                add(&args, "--client-cert-auth", NULL);
        }
        int fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
        if (fd >= 0) {
                dup2(fd, 1);
                dup2(fd, 2);
        }
        execvp(args.list[0], args.list);
        _exit(127);
}

bool etcd_spawn_restart(struct etcd_spawn *etcd, const char *tls_dir) {
        etcd->pid = fork();
        if (etcd->pid == 0) {
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                exec_etcd(etcd, tls_dir);
        }
        if (etcd->pid < 0) {
                etcd->pid = 0;
                return false;
        }
        for (int waited = 0; waited < START_TIMEOUT_MS; waited += 50) {
                if (is_healthy(etcd->metrics_port))
                        return true;
                if (waitpid(etcd->pid, NULL, WNOHANG) == etcd->pid) {
                        etcd->pid = 0;
                        break;
                }
                poll(NULL, 0, 50);
        }
        (void)fprintf(stderr, "etcd did not become healthy; its log is %s/log\n", etcd->dir);
        return false;
}

bool etcd_spawn_start(struct etcd_spawn *etcd, const char *tls_dir) {
        const char *tmp = getenv("TMPDIR");

        *etcd = (struct etcd_spawn){.tls = tls_dir != NULL};
        if (!tmp || strlen(tmp) > 32)
                tmp = "/tmp";
        (void)snprintf(etcd->dir, sizeof etcd->dir, "%s/hf-etcd-XXXXXX", tmp);
        if (!mkdtemp(etcd->dir)) {
                etcd->dir[0] = 0;
                return false;
        }
        /*
         * Another process may take a port between the choice and the bind by etcd. Then etcd exits,
         * and the next attempt chooses other ports.
         */
        for (int attempt = 0; attempt < 3; attempt++) {
                etcd->client_port = etcd_spawn_free_port();
                etcd->peer_port = etcd_spawn_free_port();
                etcd->metrics_port = etcd_spawn_free_port();
                (void)snprintf(etcd->url, sizeof etcd->url, "%s://127.0.0.1:%d",
                               tls_dir ? "https" : "http", etcd->client_port);
                if (etcd_spawn_restart(etcd, tls_dir))
                        return true;
                etcd_spawn_signal(etcd, SIGKILL);
        }
        return false;
}

void etcd_spawn_signal(struct etcd_spawn *etcd, int signal) {
        if (etcd->pid <= 0)
                return;
        kill(etcd->pid, signal);
        if (signal == SIGSTOP) /* its threads still run until the kernel reports the stop */
                while (waitpid(etcd->pid, NULL, WUNTRACED) < 0 && errno == EINTR)
                        ;
        if (signal != SIGKILL && signal != SIGTERM)
                return;
        while (waitpid(etcd->pid, NULL, 0) < 0 && errno == EINTR)
                ;
        etcd->pid = 0;
}

static int remove_one(const char *path, const struct stat *stat, int type, struct FTW *ftw) {
        return remove(path);
}

void etcd_spawn_stop(struct etcd_spawn *etcd) {
        etcd_spawn_signal(etcd, SIGKILL);
        if (etcd->dir[0])
                nftw(etcd->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
        etcd->dir[0] = 0;
}
