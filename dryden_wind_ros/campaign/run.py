"""Flying a campaign: its flights as tasks of dask.distributed, gathered as they end.

Where the tasks run is the scheduler's affair: a cluster on this machine, or one that is there. Each
outcome is written as it comes in, here, so the folder need not be shared; what is there already is
not flown. A worker that dies loses the flight it was at, which is given to another.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from queue import Empty, Queue
from typing import Any

from dryden_wind_ros import ending
from dryden_wind_ros.campaign.collect import MISSING, Results, ResultsError
from dryden_wind_ros.campaign.entry import Entry
from dryden_wind_ros.campaign.flight import Outcome, fly
from dryden_wind_ros.campaign.plan import Plan

Told = Callable[[int, int, int, int], None]
"""Called with flights done, running or waiting, failed, and all."""

LONELY, AGAIN = 300.0, 40.0
"""So long without any worker is given up, and on this machine new ones are asked for, s."""

AHEAD = 8
"""Flights handed to the scheduler a thread: enough to keep it busy, and few to take back."""


@contextmanager
def client(scheduler: str = '', workers: int = 0, processes: bool = True) -> Iterator[Any]:
    """Open a client of a scheduler; without an address, of a cluster on this machine.

    Parameters
    ----------
    scheduler : str
        Address, such as tcp://host:8786.
    workers : int
        On this machine; 0: one a CPU.
    processes : bool
        Whether they are processes of their own.

    Raises
    ------
    ResultsError
        If dask is missing, or nobody answers at the address.
    """
    try:
        import dask
        import distributed
    except ImportError:
        raise ResultsError(MISSING) from None
    cluster_of: Any = distributed.LocalCluster  # dask has no types
    client_of: Any = distributed.Client
    # Errors too: at Ctrl-C a worker's heartbeat finds nobody, and logs a traceback of it
    quiet = {'distributed.logging': {'distributed': 'critical'}}
    if scheduler:
        try:
            made = client_of(scheduler, timeout=10, set_as_default=False)
        except (OSError, ValueError, TimeoutError) as error:
            raise ResultsError(f'no scheduler answers at {scheduler}: {error}') from None
        with made:
            yield made
        return
    with dask.config.set(quiet), _undisturbed():
        cluster = cluster_of(
            n_workers=workers or os.cpu_count() or 1, threads_per_worker=1, processes=processes,
            dashboard_address='127.0.0.1:0', silence_logs='CRITICAL')
    with cluster, client_of(cluster, set_as_default=False) as made:
        if processes:
            made.register_plugin(_undisturbed_worker(), name='undisturbed')
        yield made


def _undisturbed_worker() -> Any:
    """Return what lets every worker process, whenever it begins, leave Ctrl-C alone."""
    from distributed import WorkerPlugin

    class Undisturbed(WorkerPlugin):
        def setup(self, worker: Any) -> None:
            if threading.current_thread() is threading.main_thread():
                signal.signal(signal.SIGINT, signal.SIG_IGN)

    return Undisturbed()


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Let processes that begin now not hear Ctrl-C: this one ends them, and hears it afterwards.

    Those that begin later, in the place of one that died, are told to by a plugin.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Alone:
    """Notices that no worker is left: on a busy machine, one may fail to begin for a dead one."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._since = self._asked = 0.0

    def look(self, dask_client: Any) -> None:
        """Ask for new workers on this machine; elsewhere, raise ResultsError after a while."""
        now = time.monotonic()
        if dask_client.nthreads():
            self._since = 0.0
            return
        self._since = self._since or now
        cluster = dask_client.cluster
        if cluster is None:
            if now - self._since > LONELY:
                raise ResultsError(f'the scheduler has had no worker for {LONELY:.0f} s; the same '
                                   'command goes on from here')
        elif now - max(self._since, self._asked) > AGAIN:
            self._asked = now
            cluster.scale(0)
            cluster.scale(self._workers)


def run(plan: Plan, results: Results, dask_client: Any, tell: Told,
        only: Sequence[Entry] | None = None, keep: str | None = None) -> bool:
    """Fly what is not there yet; return whether all of it was flown.

    Parameters
    ----------
    plan : Plan
    results : Results
        Open.
    dask_client : distributed.Client
    tell : callable
        Of the progress.
    only : sequence of Entry, optional
        Fly these, also where they are there already.
    keep : str, optional
        In place of the plan's.
    """
    wanted = list(plan.entries if only is None else only)
    to_fly = list({entry.key: entry for entry in wanted
                   if only is not None or not results.has(entry)}.values())
    kept = plan.keep if keep is None else keep
    done, failed = len(wanted) - len(to_fly), 0
    threads = sum(dask_client.nthreads().values()) or 1
    waiting = iter(to_fly)
    news: Queue[Any] = Queue()
    flying: set[Any] = set()
    ending.when_told(lambda: news.put(None))

    def send() -> bool:
        entry = next(waiting, None)
        if entry is None:
            return False
        future = dask_client.submit(fly, entry, kept, pure=False,
                                    key=f'fly-{entry.key}-{id(results)}')
        flying.add(future)
        future.add_done_callback(news.put)
        return True

    for _ in range(AHEAD * threads):
        if not send():
            break
    tell(done, len(flying), failed, len(wanted))
    trouble, alone = '', _Alone(len(dask_client.nthreads()) or 1)
    while flying and not ending.told():
        try:
            future = news.get(timeout=1.0)
        except Empty:
            alone.look(dask_client)
            tell(done, len(flying), failed, len(wanted))
            continue
        if future is None or future not in flying:
            continue
        flying.discard(future)
        try:
            outcome: Outcome = future.result()
        except Exception as error:
            trouble = f'{type(error).__name__}: {error}'
            failed += 1
        else:
            results.put(outcome, kept)
            done += 1
            failed += bool(outcome.row['failed'])
        future.release()
        send()
        tell(done, len(flying), failed, len(wanted))
    if flying:
        dask_client.cancel(list(flying), force=True)
    if trouble:
        raise ResultsError(f'flights are missing, their workers failed: {trouble}')
    return not ending.told()
