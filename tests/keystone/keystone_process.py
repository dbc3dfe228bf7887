"""A real Keystone in one process, for tests: SQLite, keys, bootstrap, then served on a loopback port.

Run by Debian's own Python with Keystone's packages on its path, never imported by tests. Enters: a folder and a port.
Leaves: the Identity API v3 at http://127.0.0.1:<port>/v3 with administrator `admin`, password `admin-password`.
"""

import base64
import os
import sys
from pathlib import Path
from socketserver import ThreadingMixIn
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

CONF = """\
[database]
connection = sqlite:///{folder}/keystone.db
[fernet_tokens]
key_repository = {folder}/keys
[fernet_receipts]
key_repository = {folder}/keys
[credential]
key_repository = {folder}/keys
[cache]
enabled = false
[identity]
password_hash_rounds = 4
domain_specific_drivers_enabled = true
domain_config_dir = {folder}/domains
[oslo_policy]
enforce_scope = true
enforce_new_defaults = true
"""


class Server(ThreadingMixIn, WSGIServer):
    """One thread a request."""

    daemon_threads = True


class Quiet(WSGIRequestHandler):
    """No access log."""

    def log_message(self, *_args):
        """Say nothing."""


def furnish(folder):
    """Configuration and keys."""
    for name in ("keys", "domains"):
        (folder / name).mkdir(exist_ok=True)
    for number in ("0", "1"):
        key = folder / "keys" / number
        if not key.exists():
            key.write_bytes(base64.urlsafe_b64encode(os.urandom(32)))
            key.chmod(0o600)
    (folder / "keystone.conf").write_text(CONF.format(folder=folder))


def bootstrap(url):
    """The administrator, once."""
    from keystone.cmd.bootstrap import Bootstrapper

    made = Bootstrapper()
    made.admin_username, made.admin_password = "admin", "admin-password"
    made.project_name, made.admin_role_name = "admin", "admin"
    made.service_name, made.region_id, made.immutable_roles = "keystone", "RegionOne", False
    made.public_url = made.internal_url = made.admin_url = url
    made.bootstrap()


def main(folder, port):
    """Make what is missing, and serve."""
    furnish(folder)
    fresh = not (folder / "keystone.db").exists()
    sys.argv = ["keystone", f"--config-file={folder}/keystone.conf"]
    from keystone.server.wsgi import initialize_public_application

    if fresh:
        from keystone.common.sql import upgrades
        from keystone.server import configure

        configure(config_files=[f"{folder}/keystone.conf"])
        upgrades.offline_sync_database_to_version()
        bootstrap(f"http://127.0.0.1:{port}/v3")
        os.execv(sys.executable, [sys.executable, __file__, str(folder), str(port)])
    make_server("127.0.0.1", port, initialize_public_application(), Server, Quiet).serve_forever()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
