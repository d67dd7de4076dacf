"""How long a customer waits for the page that sends the mail itself, and for the one that leaves it to a job.

python measure.py --orders 40 --clients 4
"""

import argparse
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent
PATIENCE = 60.0


def main() -> None:
    """Measure both pages and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--orders", type=int, default=40)
    parser.add_argument("--clients", type=int, default=4)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, running_shop(Path(folder)) as address:
        rows = [(path, *measure(address, path, options.orders, options.clients)) for path in ("/order-slow", "/order")]
    print(
        f"{options.orders} orders from {options.clients} clients; milliseconds until the page is there; seconds until all mails are sent\n"
    )
    print(f"{'page':<14}{'p50 ms':>10}{'p95 ms':>10}{'max ms':>10}{'mails':>8}{'all sent s':>12}")
    for path, waits, mails, sent in rows:
        p95 = statistics.quantiles(waits, n=20)[-1]
        print(f"{path:<14}{statistics.median(waits):>10.1f}{p95:>10.1f}{max(waits):>10.1f}{mails:>8}{sent:>12.1f}")
    slow, fast = (statistics.median(waits) for _, waits, _, _ in rows)
    print(f"\nThe page with Workmill is there {slow / fast:.0f} times as fast.")


@contextmanager
def running_shop(folder: Path) -> Iterator[str]:
    """The shop in threads of this process, a worker in a process of its own, both with their files in a folder; gives the address."""
    os.environ |= {"WORKMILL_STORE": f"sqlite:///{folder}/workmill.db", "SHOP_OUTBOX": f"{folder}/outbox.txt"}
    from shop import make_shop, mill  # noqa: PLC0415 - it reads the variables above

    command = [sys.executable, "-m", "workmill", "worker", "shop:mill", "--concurrency", "4", "--log-level", "warning"]
    worker = subprocess.Popen(command, cwd=HERE)  # noqa: S603 - this example's own
    with make_shop(0) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            until(lambda: bool(mill.workers.list()))
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
            worker.send_signal(signal.SIGTERM)
            worker.wait()
            mill.close()


def measure(address: str, path: str, orders: int, clients: int) -> tuple[list[float], int, float]:
    """Order so often; how long each page took (ms), how many mails were sent in the end, and after how many seconds."""
    before, start = mails(), time.monotonic()
    with ThreadPoolExecutor(clients) as pool:
        waits = list(pool.map(lambda number: order(address + path, number), range(orders)))
    until(lambda: mails() - before >= orders)
    return waits, mails() - before, time.monotonic() - start


def order(url: str, number: int) -> float:
    """Order as a browser would; the milliseconds until the page was there."""
    form = urllib.parse.urlencode({"email": f"customer{number}@example.com"}).encode()
    start = time.monotonic()
    with urllib.request.urlopen(url, form, timeout=PATIENCE) as page:  # noqa: S310 - the address is that of our own shop
        page.read()
    return (time.monotonic() - start) * 1_000


def mails() -> int:
    """How many mails have been sent."""
    outbox = Path(os.environ["SHOP_OUTBOX"])
    return len(outbox.read_text().splitlines()) if outbox.exists() else 0


def until(condition: Callable[[], bool]) -> None:
    """Look until it holds."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            sys.exit("the worker did not come, or did not send the mails")
        time.sleep(0.01)


if __name__ == "__main__":
    main()
