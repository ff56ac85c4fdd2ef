# SPDX-License-Identifier: Apache-2.0
"""A client certificate with a chain of issuers that is made at once, but takes long to verify."""
import datetime
import hashlib
import math
import random
import ssl

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa


def prime(bits, dice):
    while True:
        n = dice.getrandbits(bits) | 1 | 1 << bits - 1
        if n % 65537 != 1 and all(pow(a, n - 1, n) == 1 for a in (2, 3, 5, 7)):
            return n


class Giant:
    """An RSA key of many small primes: its signatures are made at once, and verified as slowly as those of any key of its
    size."""

    def __init__(self, bits):
        dice = random.Random(1)
        self.primes = [prime(512, dice) for _ in range(bits // 512)]
        self.n = math.prod(self.primes)

    def sign(self, digest_info):
        size = (self.n.bit_length() + 7) // 8
        padded = int.from_bytes(b"\0\1" + b"\xff" * (size - len(digest_info) - 3) + b"\0" + digest_info, "big")
        result = 0
        for p in self.primes:
            rest = self.n // p
            result += pow(padded, pow(65537, -1, p - 1), p) * rest * pow(rest, -1, p)
        return (result % self.n).to_bytes(size, "big")


def der(tag, *parts):
    body = b"".join(parts)
    size = len(body).to_bytes((len(body).bit_length() + 7) // 8 or 1, "big")
    return bytes([tag]) + (size if len(body) < 128 else bytes([128 | len(size)]) + size) + body


def write_chain(path, n=20, bits=16384):
    giant, small, out = Giant(bits), rsa.generate_private_key(65537, 2048), b""
    public = rsa.RSAPublicNumbers(65537, giant.n).public_key()
    name = lambda i: x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, f"issuer {i}")])
    algorithm = bytes.fromhex("300d06092a864886f70d01010b0500")
    now = datetime.datetime.utcnow()
    for i in range(n + 1):
        builder = x509.CertificateBuilder(name(i + 1), name(i), small.public_key() if i == 0 else public, i + 1,
                                          now - datetime.timedelta(1), now + datetime.timedelta(1))
        builder = builder.add_extension(x509.BasicConstraints(i > 0, None), True)
        tbs = builder.sign(small, hashes.SHA256()).tbs_certificate_bytes
        info = bytes.fromhex("3031300d060960864801650304020105000420") + hashlib.sha256(tbs).digest()
        out += ssl.DER_cert_to_PEM_cert(der(0x30, tbs, algorithm, der(3, b"\0", giant.sign(info)))).encode()
    key = small.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path.write_bytes(out + key)
