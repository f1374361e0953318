"""SQLite bags (.db3) in the order of recording, of any schema, whole or damaged."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Collection, Iterator
from pathlib import Path

from dryden_wind_ros.logs.messages import Contents, Definition, Progress, Raw

MAGIC = b'SQLite format 3'
_LEAST = 40  # bytes that a message takes in a database
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
        self._counted = True

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
            what = f'{self._lost} messages' if self._counted else 'the last messages'
            self.contents.notes.append(f'{self.path.name} is damaged: {what} in it cannot be read')

    def _definitions(self, connection: sqlite3.Connection) -> None:
        try:
            for kind, encoding, text in connection.execute(
                    'SELECT topic_type, encoding, encoded_message_definition '
                    'FROM message_definitions'):
                self.contents.definitions[kind] = Definition(encoding or '', text or '')
        except sqlite3.Error:
            pass  # before ROS 2 Jazzy there was no such table

    def _last(self, connection: sqlite3.Connection) -> int:
        try:
            return int(connection.execute('SELECT max(id) FROM messages').fetchone()[0] or 0)
        except (sqlite3.Error, TypeError):
            self._counted = False
            return self.path.stat().st_size // _LEAST  # on a page that cannot be read

    def _rows(self, connection: sqlite3.Connection,
              last: int) -> Iterator[tuple[int, int, int, bytes]]:
        """Yield the rows, passing over those on pages that cannot be read."""
        done = 0
        while done < last:
            try:
                for row in connection.execute(f'{_SELECT} WHERE id > ? ORDER BY id', (done,)):
                    if row[0] <= done:
                        raise sqlite3.DatabaseError('a damaged tree leads in a circle')
                    done = row[0]
                    yield row
                return
            except sqlite3.Error:
                # One by one until a row can be read again.
                bad, found = done, None
                while found is None and done < last:
                    done += 1
                    with contextlib.suppress(sqlite3.Error):
                        found = connection.execute(
                            f'{_SELECT} WHERE id = ?', (done,)).fetchone()
                self._lost += done - bad - (found is not None)
                if found is not None:
                    yield found
