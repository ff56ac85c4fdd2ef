# SPDX-License-Identifier: Apache-2.0
"""An etcd that serves over TLS and requires a client certificate."""
import subprocess

from holdfastd import EtcdMember, free_ports


def make_ca(directory, name):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
                    f"/CN={name}", "-keyout", directory / f"{name}.key", "-out", directory / f"{name}.crt"], check=True, capture_output=True)


def make_cert(directory, ca, name, extension):
    (directory / f"{name}.ext").write_text(extension)
    subprocess.run(["openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}", "-keyout",
                    directory / f"{name}.key", "-out", directory / f"{name}.csr"], check=True, capture_output=True)
    subprocess.run(["openssl", "x509", "-req", "-in", directory / f"{name}.csr", "-CA", directory / f"{ca}.crt", "-CAkey",
                    directory / f"{ca}.key", "-CAcreateserial", "-days", "2", "-extfile", directory / f"{name}.ext", "-out",
                    directory / f"{name}.crt"], check=True, capture_output=True)


def tls_etcd(directory):
    """Its CA is etcd-ca.crt in the directory, and the pair for a client is client.crt and client.key. other-ca.crt is another CA."""
    make_ca(directory, "etcd-ca")
    make_ca(directory, "other-ca")
    make_cert(directory, "etcd-ca", "server", "subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth\n")
    make_cert(directory, "etcd-ca", "client", "extendedKeyUsage=clientAuth\n")
    client, peer = free_ports(2)
    return EtcdMember(directory, "tls", client, peer, f"tls=http://127.0.0.1:{peer}",
                      [f"--cert-file={directory / 'server.crt'}", f"--key-file={directory / 'server.key'}", "--client-cert-auth",
                       f"--trusted-ca-file={directory / 'etcd-ca.crt'}"], scheme="https")
