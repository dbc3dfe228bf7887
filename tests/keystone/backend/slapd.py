"""A real OpenLDAP slapd for a test: private folder, free ports, its own certificate authority."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import run

from tests.real.certificates import Authority
from tests.real.ports import free_port, holds
from tests.real.process import Command, running

BASE = "dc=corp,dc=example,dc=org"
BIND_DN = f"cn=svc,{BASE}"
PASSWORD = "it's $ecret"
CONF = """\
include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/inetorgperson.schema
modulepath /usr/lib/ldap
moduleload back_mdb
pidfile {folder}/slapd.pid
TLSCACertificateFile {folder}/ca.pem
TLSCertificateFile {folder}/server.crt
TLSCertificateKeyFile {folder}/server.key
database mdb
maxsize 10485760
suffix "{base}"
rootdn "cn=root,{base}"
rootpw root
directory {folder}/db
"""


@dataclass(frozen=True)
class Directory:
    """A served directory with `users` people below ou=people, and ou=empty without any."""

    port: int
    tls_port: int
    ca: bytes


def _tree(users: int) -> str:
    entries = [f"dn: {BASE}\nobjectClass: dcObject\nobjectClass: organization\ndc: corp\no: corp\n"]
    entries += [f"dn: ou={name},{BASE}\nobjectClass: organizationalUnit\nou: {name}\n" for name in ("people", "empty")]
    secret = f"objectClass: simpleSecurityObject\nobjectClass: organizationalRole\nuserPassword: {PASSWORD}\n"
    entries.append(f"dn: {BIND_DN}\n{secret}cn: svc\n")
    person = "objectClass: inetOrgPerson\nsn: x\ncn: x\n"
    entries += [
        f"dn: uid=u{number},ou=people,{BASE}\n{person}uid: u{number}\nuserPassword: u{number}-password\n"
        for number in range(users)
    ]
    return "\n".join(entries)


@contextmanager
def slapd(folder: Path, *, users: int = 3) -> Iterator[Directory]:
    """Serve for the time of a `with`."""
    authority = Authority()
    authority.issue(folder, "server")
    (folder / "db").mkdir()
    (folder / "ca.pem").write_bytes(authority.pem)
    (folder / "slapd.conf").write_text(CONF.format(folder=folder, base=BASE))
    (folder / "tree.ldif").write_text(_tree(users))
    run(["/usr/sbin/slapadd", "-q", "-f", "slapd.conf", "-l", "tree.ldif"], cwd=folder, check=True)
    port, tls_port = free_port(), free_port()
    urls = f"ldap://127.0.0.1:{port}/ ldaps://127.0.0.1:{tls_port}/"
    command = Command("slapd", ["/usr/sbin/slapd", "-f", "slapd.conf", "-h", urls, "-d", "0"], folder)
    with running(command, port=port) as process:
        process.wait_until(lambda: holds(process.pid, tls_port))
        yield Directory(port, tls_port, authority.pem)
