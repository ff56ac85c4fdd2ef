/* SPDX-License-Identifier: Apache-2.0 */
/* See watched_identity.h. The linker takes this copy of server/cacher/requests/store_identity.c in
 * place of the product's. */
#include "watched_identity.h"

#include "server/cacher/requests/store_identity.c"

bool watched_identity_is_confirming(struct hfd_cacher *cacher) {
        pthread_mutex_lock(&cacher->mu);
        bool confirming = cacher->identity->confirming;
        pthread_mutex_unlock(&cacher->mu);
        return confirming;
}
