/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A private etcd for a test, on free ports of the loopback and in a directory of its own. It is
 * ended by its process id, and its directory is removed. It dies with the thread that started it.
 * Thread: owner only.
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
 * Makes the directory, chooses ports, starts etcd and waits until it is healthy. With tls_dir,
 * which must have ca.crt, server.crt and server.key, the client port demands client certificates.
 * Returns false, with a line on stderr, if that failed.
 */
bool etcd_spawn_start(struct etcd_spawn *etcd, const char *tls_dir);
/* Sends the signal; after SIGKILL or SIGTERM also reaps it. */
void etcd_spawn_signal(struct etcd_spawn *etcd, int signal);
/* Starts it again with the same directory and ports. */
bool etcd_spawn_restart(struct etcd_spawn *etcd, const char *tls_dir);
/* Kills it and removes its directory. Accepts one that never started. */
void etcd_spawn_stop(struct etcd_spawn *etcd);

/* A port on which nothing listens at the moment. */
int etcd_spawn_free_port(void);
