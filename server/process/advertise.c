/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses the address to publish (advertise.h).
 *
 * Invariant: nothing is sent, and no netlink socket is used, because the systemd unit does not
 * allow one. Instead a datagram socket is connected, for which the kernel only chooses the source
 * address. The destination is an address that is reserved for documentation, so the kernel uses the
 * default route.
 */
#include "server/process/advertise.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* An address of either family, for the system calls. */
union address {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
};

static bool is_wildcard(const char *text) {
        struct in6_addr v6;

        return strcmp(text, "0.0.0.0") == 0 ||
               (inet_pton(AF_INET6, text, &v6) == 1 && IN6_IS_ADDR_UNSPECIFIED(&v6));
}

/* The address from which this host would reach `to`. False: it has no route. */
static bool find_source(const union address *to, socklen_t n_to,
                        char ret_address[INET6_ADDRSTRLEN]) {
        union address from = {0};
        socklen_t n = sizeof from;
        int family = to->any.sa_family;
        int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

        if (fd < 0)
                return false;
        bool found = connect(fd, &to->any, n_to) == 0 && getsockname(fd, &from.any, &n) == 0;
        (void)close(fd);
        if (!found)
                return false;
        const void *bytes =
                family == AF_INET ? (const void *)&from.v4.sin_addr : &from.v6.sin6_addr;
        return inet_ntop(family, bytes, ret_address, INET6_ADDRSTRLEN) != NULL;
}

static bool find_default_v4(char ret_address[INET6_ADDRSTRLEN]) {
        union address to = {.v4 = {.sin_family = AF_INET, .sin_port = htons(9)}};

        return inet_pton(AF_INET, "192.0.2.1", &to.v4.sin_addr) == 1 &&
               find_source(&to, sizeof to.v4, ret_address);
}

static bool find_default_v6(char ret_address[INET6_ADDRSTRLEN]) {
        union address to = {.v6 = {.sin6_family = AF_INET6, .sin6_port = htons(9)}};

        return inet_pton(AF_INET6, "2001:db8::1", &to.v6.sin6_addr) == 1 &&
               find_source(&to, sizeof to.v6, ret_address);
}

void hfd_advertise_address(const char *advertise, const char *bind_address,
                           char ret_address[INET6_ADDRSTRLEN]) {
        bool v6 = strchr(bind_address, ':') != NULL;
        const char *address = advertise[0] ? advertise : bind_address;

        if (!is_wildcard(address))
                (void)snprintf(ret_address, INET6_ADDRSTRLEN, "%s", address);
        else if (!(v6 && find_default_v6(ret_address)) && !find_default_v4(ret_address))
                (void)snprintf(ret_address, INET6_ADDRSTRLEN, "%s", v6 ? "::1" : "127.0.0.1");
}
