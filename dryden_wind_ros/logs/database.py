"""SQLite bags (.db3) in the order of recording, of any schema, whole or damaged."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator
from pathlib import Path

from dryden_wind_ros.logs.messages import Contents, Definition, Progress, Raw

MAGIC = b'SQLite format 3'
_SELECT = 'SELECT id, topic_id, timestamp, data FROM messages'


class DatabaseFile:
    """The messages of an SQLite bag.

    Parameters
    ----------
    path : Path
        The database; is not written to.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.contents = Contents()
        self._lost = 0

    def messages(self, kinds: Collection[str], progress: Progress) -> Iterator[Raw]:
        """Yield the messages of these types in the order in which they were recorded."""
        connection = sqlite3.connect(f'{self.path.resolve().as_uri()}?mode=ro&immutable=1',
                                     uri=True)
        try:
            topics = {number: (name, kind) for number, name, kind in connection.execute(
                'SELECT id, name, type FROM topics')}
            self.contents.topics.update(dict(topics.values()))
            self._definitions(connection)
            last = self._last(connection)
            for count, (number, topic_id, stamp, data) in enumerate(self._rows(connection, last)):
                topic, kind = topics.get(topic_id, ('', ''))
                self.contents.counts[topic] = self.contents.counts.get(topic, 0) + 1
                if kind in kinds:
                    yield Raw(topic, kind, int(stamp), data)
                if not count % 2000:
                    progress(number / max(last, 1))
        finally:
            connection.close()
        if self._lost:
            self.contents.notes.append(
                f'{self.path.name} is damaged: {self._lost} messages in it cannot be read')

    def _definitions(self, connection: sqlite3.Connection) -> None:
        try:
            for kind, encoding, text in connection.execute(
                    'SELECT topic_type, encoding, encoded_message_definition '
                    'FROM message_definitions'):
                self.contents.definitions[kind] = Definition(encoding or '', text or '')
        except sqlite3.Error:
            pass  # before ROS 2 Jazzy there was no such table

    @staticmethod
    def _last(connection: sqlite3.Connection) -> int:
        try:
            return int(connection.execute('SELECT max(id) FROM messages').fetchone()[0] or 0)
        except (sqlite3.Error, TypeError):
            return 1 << 40  # the last page is damaged: look as far as any bag goes

    def _rows(self, connection: sqlite3.Connection,
              last: int) -> Iterator[tuple[int, int, int, bytes]]:
        """Yield the rows, passing over those on pages that cannot be read."""
        done = 0
        while done < last:
            try:
                for row in connection.execute(f'{_SELECT} WHERE id > ? ORDER BY id', (done,)):
                    done = row[0]
                    yield row
                return
            except sqlite3.Error:
                following = self._readable(connection, done, last)
                if following is None:
                    self._lost += max(last - done, 1) if last < 1 << 40 else 1
                    return
                self._lost += following - done - 1
                done = following - 1

    @staticmethod
    def _readable(connection: sqlite3.Connection, done: int, last: int) -> int | None:
        """Return the first row after `done` that can be read again."""
        def reads(number: int) -> bool:
            try:
                connection.execute(f'{_SELECT} WHERE id = ?', (number,)).fetchone()
            except sqlite3.Error:
                return False
            return True

        step = 1
        while done + step <= last and not reads(done + step):
            step *= 2
        if done + step > last:
            return None
        low, high = done + step // 2, done + step
        while high - low > 1:  # the damage ends between them
            middle = (low + high) // 2
            low, high = (low, middle) if reads(middle) else (middle, high)
        return high
