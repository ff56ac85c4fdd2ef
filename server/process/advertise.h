/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The address that this instance publishes in its kubeconfig, its identity Lease and its
 * certificate.
 *
 * Thread: any. Asks the kernel only; sends nothing.
 */
#include <netinet/in.h>

/*
 * Chooses --advertise-address (advertise; "" = not given), else the bind address. If that is a
 * wildcard, chooses the address of the interface with the default route, as kube-apiserver does;
 * without such a route, a loopback address. Both arguments are IP addresses.
 */
void hfd_advertise_address(const char *advertise, const char *bind_address,
                           char ret_address[INET6_ADDRSTRLEN]);
