/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The steps of every store before it starts a transaction: the check, and the size.
 *
 * Invariant: a transaction that passes the checks behaves the same in every store, apart from the
 * limit on its size, and from the compares that a store that encrypts refuses (encrypted_store.h).
 * So the checks must refuse everything else that one of the stores does not support.
 */
#include "server/storage/store.h"

#include <errno.h>
#include <string.h>

#include "server/storage/keys.h"

/* Checks a key. 0, -EINVAL or HF_E_TOO_LARGE. */
static int check_key(const char *key) {
        if (!key || *key == 0)
                return -EINVAL;
        return strnlen(key, HFD_KEY_MAX) >= HFD_KEY_MAX ? HF_E_TOO_LARGE : 0;
}

/* Whether ops[i] and an earlier op have the same key, and one of them is a put. Such a transaction
 * is refused, because the key would have two different values at one mod revision. Deleting a key
 * twice is harmless. */
static bool is_written_before(const struct hfd_txn *txn, size_t i) {
        const struct hfd_op *op = &txn->ops[i];

        for (size_t j = 0; j < i; j++)
                if ((op->kind == HFD_PUT || txn->ops[j].kind == HFD_PUT) &&
                    strcmp(op->key, txn->ops[j].key) == 0)
                        return true;
        return false;
}

/* Checks the operations of a transaction. 0, -EINVAL or HF_E_TOO_LARGE. */
static int check_ops(const struct hfd_txn *txn) {
        for (size_t i = 0; i < txn->n_ops; i++) {
                const struct hfd_op *op = &txn->ops[i];
                int r = check_key(op->key);

                if (r != 0)
                        return r;
                if (op->kind != HFD_PUT && op->kind != HFD_DELETE)
                        return -EINVAL;
                if (op->kind == HFD_PUT && !op->value)
                        return -EINVAL;
                if (is_written_before(txn, i))
                        return -EINVAL;
        }
        return 0;
}

int hfd_txn_check(const struct hfd_txn *txn) {
        int r;

        if (txn->n_compares > HFD_TXN_MAX || txn->n_ops > HFD_TXN_MAX ||
            txn->n_get_on_failure > HFD_TXN_MAX)
                return HF_E_TOO_LARGE;
        for (size_t i = 0; i < txn->n_compares; i++) {
                const struct hfd_compare *compare = &txn->compares[i];

                r = check_key(compare->key);
                if (r != 0)
                        return r;
                if (compare->kind != HFD_MOD_EQUALS && !compare->value && compare->n_value > 0)
                        return -EINVAL;
        }
        for (size_t i = 0; i < txn->n_get_on_failure; i++) {
                r = check_key(txn->get_on_failure[i]);
                if (r != 0)
                        return r;
        }
        return check_ops(txn);
}

size_t hfd_txn_bytes(const struct hfd_txn *txn) {
        size_t n = 0;

        for (size_t i = 0; i < txn->n_compares; i++)
                n += strlen(txn->compares[i].key) + txn->compares[i].n_value;
        for (size_t i = 0; i < txn->n_ops; i++) {
                n += strlen(txn->ops[i].key);
                n += txn->ops[i].kind == HFD_PUT ? txn->ops[i].value->n : 0;
        }
        return n;
}

bool hfd_txn_is_too_large(const struct hfd_txn *txn) {
        return hfd_txn_bytes(txn) > (txn->copied ? HFD_TXN_COPIED_BYTES_MAX : HFD_TXN_BYTES_MAX);
}
