/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The health checks of the process itself. The opening of health_checks.c lists them. */
struct hfd_server;

/*
 * Registers the checks with server->host.health. They are never removed, although the objects that
 * they read are freed before host.health: only requests run checks, and all requests have ended
 * then. Call before the HTTP server starts. The checks run on HTTP workers and never block. Thread:
 * that of hfd_assembly_make. 0 or -errno.
 */
int hfd_health_checks_add(struct hfd_server *server);
