"""Runs a tracking server of MLflow with users and proxied artifacts in a folder, until standard input ends: mlflow_server.py FOLDER. Then it removes the folder.

Writes its address when it answers. The administrator is admin; reader may only read.
"""
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

from werkzeug.security import generate_password_hash

PASSWORD = "correct-horse-battery"


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def start(folder, port):
    config = os.path.join(folder, "auth.ini")
    with open(config, "w") as f:
        f.write(
            "[mlflow]\n"
            "default_permission = READ\n"
            f"database_uri = sqlite:///{folder}/auth.db\n"
            "admin_username = admin\n"
            f"admin_password = {PASSWORD}\n"
            "authorization_function = mlflow.server.auth:authenticate_request_basic_auth\n"
        )
    env = dict(
        os.environ, MLFLOW_AUTH_CONFIG_PATH=config, MLFLOW_FLASK_SERVER_SECRET_KEY="secret", MLFLOW_SERVER_ENABLE_JOB_EXECUTION="false",
        MLFLOW_DISABLE_TELEMETRY="true", PYTHONWARNINGS="ignore",
    )
    return subprocess.Popen(
        [
            sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1", "--app-name", "basic-auth",
            "--backend-store-uri", f"sqlite:///{folder}/mlflow.db", "--artifacts-destination", os.path.join(folder, "artifacts"), "--serve-artifacts",
        ],
        env=env, cwd=folder, stdin=subprocess.DEVNULL, stdout=open(os.path.join(folder, "log"), "w"), stderr=subprocess.STDOUT, start_new_session=True,
    )


def answers(address):
    try:
        urllib.request.urlopen(address + "/health", timeout=5).close()
        return True
    except (OSError, urllib.error.URLError):
        return False


def add_users(folder):
    """Adds the user reader. Hashes of passwords are ones that take no time, as the server computes them for every request."""
    password = generate_password_hash(PASSWORD, "pbkdf2:sha256:1")
    with sqlite3.connect(os.path.join(folder, "auth.db")) as db:
        db.execute("UPDATE users SET password_hash = ?", (password,))
        db.execute("INSERT INTO users (username, password_hash, is_admin) VALUES ('reader', ?, 0)", (password,))


def main():
    folder = os.path.abspath(sys.argv[1])
    port = free_port()
    server = start(folder, port)
    address = f"http://127.0.0.1:{port}"

    def watch():
        sys.stdin.read()
        os.killpg(server.pid, 9)
        server.wait()
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(0)

    threading.Thread(target=watch, daemon=True).start()
    while not answers(address):
        if server.poll() is not None:
            with open(os.path.join(folder, "log")) as f:
                sys.exit(f.read()[-4000:])
        time.sleep(0.1)
    add_users(folder)
    print(address, flush=True)
    server.wait()


if __name__ == "__main__":
    main()
