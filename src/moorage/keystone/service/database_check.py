"""The first container of every pod that uses a database server: it proves that the account can log in, or says why not.

Enters: nothing. Leaves: the argument vector. Without it a pod with a wrong password would count as ready, because `GET /v3` needs no
database, and a rollout would replace every pod that works; and `keystone-manage` would wait for a dead server for ever.
"""

from __future__ import annotations

from typing import Final

_SCRIPT: Final = """\
import os, sys, time
from urllib.parse import unquote, urlsplit

url = urlsplit(os.environ["OS_DATABASE__CONNECTION"])
who = {"host": url.hostname, "port": url.port, "user": unquote(url.username), "password": unquote(url.password),
       "database": url.path[1:], "connect_timeout": 5}

def log_in():
    if url.scheme.startswith("postgresql"):
        import psycopg2 as driver
    else:
        import pymysql as driver
    driver.connect(**who).close()

def answered(error):
    return "FATAL" in str(error) if url.scheme.startswith("postgresql") else error.args[:1] != (2003,)

for attempt in range(20):
    try:
        log_in()
        sys.exit()
    except Exception as error:
        said = " ".join(str(error.args[-1] if error.args else error).split())
        if answered(error):
            break
    time.sleep(1)
sys.exit(f"database {url.hostname}:{url.port}: {said}")
"""
COMMAND: Final = ("python3", "-c", _SCRIPT)
"""What a server refuses is said at once; one that does not answer is asked for 20 seconds. The last line is the message of the container."""
