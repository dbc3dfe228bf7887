"""A private OpenLDAP directory (Debian's slapd) with plain and TLS listeners.

Enters: a folder, an LDIF. Leaves: a served `Directory` that can be stopped, started on the same ports, and have passwords changed.
Anonymous clients may only log in, as in a company directory. memberOf is filled by the server for groups made while it runs.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import ldap3
from ldap3.core.exceptions import LDAPInvalidCredentialsResult
from tests.real.certificates import Authority
from tests.real.ports import free_port, holds
from tests.real.process import Command, Process

SLAPD, SLAPADD = Path("/usr/sbin/slapd"), Path("/usr/sbin/slapadd")
ROOT_PASSWORD = "directory-manager"
EXAMPLE = Path(__file__).parents[2] / "examples" / "keystone-ldap" / "directory.ldif"

CORP = "dc=corp,dc=example,dc=org"
CORP_READER = f"cn=svc,{CORP}"
CORP_PASSWORD = "it's $ecret"

CONF = """\
include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/inetorgperson.schema
modulepath /usr/lib/ldap
moduleload back_mdb
moduleload memberof
moduleload refint
pidfile {folder}/slapd.pid
argsfile {folder}/slapd.args
TLSCACertificateFile {folder}/ca.crt
TLSCertificateFile {folder}/slapd.crt
TLSCertificateKeyFile {folder}/slapd.key
database mdb
maxsize 67108864
suffix "{suffix}"
rootdn "cn=manager,{suffix}"
rootpw {password}
directory {folder}/db
overlay memberof
overlay refint
refint_attributes member memberOf
access to attrs=userPassword by self write by anonymous auth by * none
access to * by users read by anonymous auth
"""


class DirectoryMissing(Exception):
    """slapd is not installed."""


@dataclass
class Directory:
    """A slapd on two loopback ports."""

    folder: Path
    suffix: str
    port: int
    tls_port: int
    authority: Authority = field(default_factory=Authority)
    process: Process | None = None

    @property
    def url(self) -> str:
        return f"ldap://127.0.0.1:{self.port}"

    @property
    def tls_url(self) -> str:
        """The TLS listener; `authority.pem` proves its certificate."""
        return f"ldaps://127.0.0.1:{self.tls_port}"

    @property
    def manager(self) -> str:
        """The DN that may do anything; its password is ROOT_PASSWORD."""
        return f"cn=manager,{self.suffix}"

    def start(self) -> None:
        """Serve; ready means that our own process holds both ports and greets."""
        argv = [str(SLAPD), "-f", str(self.folder / "slapd.conf"), "-h", f"{self.url}/ {self.tls_url}/", "-d", "0"]
        self.process = Command("slapd", argv, self.folder).start()
        self.process.wait_until(self._serves, limit=20)

    def _serves(self) -> bool:
        pid = self.process.pid if self.process else 0
        if not (holds(pid, self.port) and holds(pid, self.tls_port)):
            return False
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def stop(self) -> None:
        """End it; the data stays for the next `start`."""
        if self.process:
            self.process.stop()
            self.process = None

    @contextmanager
    def connection(self, dn: str = "", password: str = "") -> Iterator[ldap3.Connection]:
        """A bound connection for the time of a `with`, the manager's without arguments; raises ldap3's LDAPException.

        The socket is closed here: ldap3 leaves it open after a failed bind or connect, and after its own `with`.
        """
        server = ldap3.Server("127.0.0.1", self.port, get_info=ldap3.NONE, connect_timeout=5)
        connection = ldap3.Connection(server, dn or self.manager, password or ROOT_PASSWORD, raise_exceptions=True)
        try:
            connection.bind()
            yield connection
        finally:
            connection.strategy.close()
            if connection.socket:
                connection.socket.close()

    def takes(self, dn: str, password: str) -> bool:
        """Whether this login is right; raises LDAPException when nobody answers."""
        try:
            with self.connection(dn, password):
                return True
        except LDAPInvalidCredentialsResult:
            return False

    def set_password(self, dn: str, password: str) -> None:
        """Change the password of an entry as the manager."""
        with self.connection() as connection:
            connection.modify(dn, {"userPassword": [(ldap3.MODIFY_REPLACE, [password])]})


def _load(directory: Directory, ldif: Path) -> None:
    shutil.rmtree(directory.folder / "db", ignore_errors=True)
    (directory.folder / "db").mkdir(parents=True)
    directory.authority.issue(directory.folder, "slapd")
    (directory.folder / "ca.crt").write_bytes(directory.authority.pem)
    conf = CONF.format(folder=directory.folder, suffix=directory.suffix, password=ROOT_PASSWORD)
    (directory.folder / "slapd.conf").write_text(conf)
    command = [str(SLAPADD), "-q", "-f", str(directory.folder / "slapd.conf"), "-l", str(ldif)]
    subprocess.run(command, check=True, capture_output=True)


@contextmanager
def slapd(folder: Path, ldif: Path = EXAMPLE, suffix: str = "dc=planetexpress,dc=com") -> Iterator[Directory]:
    """Serve the tree of an LDIF file; raises DirectoryMissing with the package that is needed."""
    if not SLAPD.exists():
        raise DirectoryMissing("slapd is not installed; Debian package slapd")
    folder.mkdir(parents=True, exist_ok=True)
    directory = Directory(folder, suffix, free_port(), free_port())
    _load(directory, ldif)
    try:
        directory.start()
        yield directory
    finally:
        directory.stop()


@contextmanager
def corp(folder: Path, *, users: int = 3) -> Iterator[Directory]:
    """A directory below CORP: `users` people u0, u1, ... (password `<uid>-password`) in ou=people, nobody in ou=empty."""
    folder.mkdir(parents=True, exist_ok=True)
    tree = folder / "tree.ldif"
    tree.write_text(_people(users))
    with slapd(folder, tree, CORP) as directory:
        yield directory


def _people(users: int) -> str:
    entries = [f"dn: {CORP}\nobjectClass: dcObject\nobjectClass: organization\ndc: corp\no: corp\n"]
    entries += [f"dn: ou={name},{CORP}\nobjectClass: organizationalUnit\nou: {name}\n" for name in ("people", "empty")]
    account = f"objectClass: simpleSecurityObject\nobjectClass: organizationalRole\nuserPassword: {CORP_PASSWORD}\n"
    entries.append(f"dn: {CORP_READER}\n{account}cn: svc\n")
    person = "objectClass: inetOrgPerson\nsn: x\ncn: x\n"
    entries += [
        f"dn: uid=u{number},ou=people,{CORP}\n{person}uid: u{number}\nuserPassword: u{number}-password\n"
        for number in range(users)
    ]
    return "\n".join(entries)
