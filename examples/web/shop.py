"""A shop of one page. Who orders gets a confirmation by mail, and the mail server is slow.

python shop.py               the shop, on http://127.0.0.1:8000
workmill worker shop:mill    what sends the mail
"""

import argparse
import os
import time
from collections.abc import Callable, Iterable
from http import HTTPStatus
from pathlib import Path
from socketserver import ThreadingMixIn
from typing import Any
from urllib.parse import parse_qs
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from workmill import Retry, Workmill

MAIL_SECONDS = 0.3
OUTBOX = Path(os.environ.get("SHOP_OUTBOX", "outbox.txt"))

PAGE = """<!doctype html><title>Shop</title><h1>One teapot</h1>
<form method=post><input name=email type=email value=ann@example.com>
<button formaction=/order-slow>Order, the page sends the mail</button>
<button formaction=/order>Order, a job sends the mail</button></form>"""

mill = Workmill()


@mill.job(queue="mail", retry=Retry(max_attempts=8), timeout=30)
def send_confirmation(email: str) -> None:
    """Talk to a mail server that takes its time; here it is a pause and a line in a file."""
    time.sleep(MAIL_SECONDS)
    with OUTBOX.open("a") as outbox:
        outbox.write(f"To {email}: thank you for your order\n")


def order_slow(email: str) -> str:
    """The customer waits for the mail server; when it is down, the order fails with it."""
    send_confirmation(email)
    return "Thank you! We have sent you a mail."


def order(email: str) -> str:
    """The customer waits for one commit; a mail server that is down gets the mail later."""
    send_confirmation.enqueue(email)
    return "Thank you! We are sending you a mail."


ROUTES: dict[str, Callable[[str], str]] = {"/order-slow": order_slow, "/order": order}


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """The WSGI application: runs under any server that speaks WSGI."""
    view = ROUTES.get(environ["PATH_INFO"])
    status, text = HTTPStatus.OK, PAGE
    if view is not None and environ["REQUEST_METHOD"] == "POST":
        form = parse_qs(environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0)).decode())
        text = view(form.get("email", ["nobody@example.com"])[0])
    elif environ["PATH_INFO"] != "/":
        status, text = HTTPStatus.NOT_FOUND, "There is no such page."
    start_response(f"{status.value} {status.phrase}", [("Content-Type", "text/html; charset=utf-8")])
    return [text.encode()]


class Server(ThreadingMixIn, WSGIServer):
    """A thread for each request."""

    daemon_threads = True
    request_queue_size = 128


class QuietHandler(WSGIRequestHandler):
    """Without a line for each request."""

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def make_shop(port: int) -> WSGIServer:
    """A server that has not started to serve."""
    return make_server("127.0.0.1", port, application, Server, QuietHandler)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=8000)
    with make_shop(parser.parse_args().port) as shop:
        print(f"http://127.0.0.1:{shop.server_port}  (Ctrl-C ends it)")
        try:
            shop.serve_forever()
        except KeyboardInterrupt:
            print()
