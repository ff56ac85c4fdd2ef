/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A private etcd for a test, on free ports of 127.0.0.1 and in its own directory, which is removed
 * at the end. The kernel kills it when the thread that started it ends. Thread: only the one that
 * started it.
 */
#include <stdbool.h>
#include <sys/types.h>

struct etcd_spawn {
        pid_t pid; /* 0 = not running */
        char dir[64];
        char url[64]; /* of the client port */
        int client_port, peer_port, metrics_port;
        bool tls;
};

bool etcd_spawn_available(void);

/*
 * Creates the directory, chooses ports, starts etcd and waits until it is healthy. With tls_dir,
 * which must contain ca.crt, server.crt and server.key, the client port requires client
 * certificates. Returns false on failure. If etcd did not become healthy, stderr says so.
 * Call etcd_spawn_stop in both cases.
 */
bool etcd_spawn_start(struct etcd_spawn *etcd, const char *tls_dir);
/* Sends the signal. Waits for the exit after SIGKILL and SIGTERM, and for the stop after
 * SIGSTOP. */
void etcd_spawn_signal(struct etcd_spawn *etcd, int signal);
/* Starts it again with the same directory and ports, when it does not run, and waits until it is
 * healthy. Returns false on failure; etcd may then still run. */
bool etcd_spawn_restart(struct etcd_spawn *etcd, const char *tls_dir);
/* Kills etcd and removes its directory. Accepts a zeroed struct. */
void etcd_spawn_stop(struct etcd_spawn *etcd);

/* A port on which nothing listens at the moment; -1 on failure. */
int etcd_spawn_free_port(void);
