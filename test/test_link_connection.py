"""Connection strings: what is taken, what is refused and with which words."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dryden_wind_ros.sitl.connection import ConnectionStringError, parse_connection


@pytest.mark.parametrize(('text', 'kind', 'host', 'port'), [
    ('tcp:127.0.0.1:5762', 'tcp', '127.0.0.1', 5762),
    (' tcp:localhost:5772 ', 'tcp', 'localhost', 5772),
    ('TCP:127.0.0.1:5762', 'tcp', '127.0.0.1', 5762),
    ('tcp:127.3.2.1:1', 'tcp', '127.3.2.1', 1),
    ('tcpin:127.0.0.1:5790', 'tcpin', '127.0.0.1', 5790),
    ('udp:127.0.0.1:14550', 'udpin', '127.0.0.1', 14550),
    ('udpin:127.0.0.1:14550', 'udpin', '127.0.0.1', 14550),
    ('udpout:127.0.0.1:14551', 'udpout', '127.0.0.1', 14551),
    ('127.0.0.1:14550', 'udpin', '127.0.0.1', 14550),
    # A client that names no host means this machine.
    ('tcp::5762', 'tcp', '127.0.0.1', 5762),
    ('udpout::14550', 'udpout', '127.0.0.1', 14550),
])
def test_pymavlink_strings_are_taken(text, kind, host, port):
    target = parse_connection(text)
    assert (target.kind, target.host, target.port) == (kind, host, port)


@pytest.mark.parametrize('same', [
    ('tcp:127.0.0.1:6162', 'tcp:localhost:6162', 'TCP:127.0.0.1:6162', 'tcp::6162',
     'tcp:LOCALHOST:6162', 'tcp:127.1:6162'),
    ('udp:127.0.0.1:14550', 'udpin:localhost:14550', '127.0.0.1:14550'),
    ('tcp:Sitl.example:5762', 'tcp:sitl.example:5762'),
])
def test_strings_that_mean_one_connection_are_one(same):
    assert len({parse_connection(text, allow_remote=True).identity for text in same}) == 1


def test_strings_that_mean_several_connections_are_several():
    texts = ('tcp:127.0.0.1:6162', 'tcp:127.0.0.2:6162', 'tcp:127.0.0.1:6163',
             'tcpin:127.0.0.1:6162', 'udpout:127.0.0.1:6162', 'udpin:127.0.0.1:6162')
    assert len({parse_connection(text).identity for text in texts}) == len(texts)


@pytest.mark.parametrize(('text', 'why'), [
    ('', 'empty'),
    ('   ', 'empty'),
    ('tcp:', 'host:port'),
    ('tcp:127.0.0.1', 'host:port'),
    ('tcp:127.0.0.1:', "port ''"),
    ('tcp:127.0.0.1:port', "port 'port'"),
    ('tcp:127.0.0.1:0', "port '0'"),
    ('tcp:127.0.0.1:65536', "port '65536'"),
    ('tcp:127.0.0.1:-1', "port '-1'"),
    ('tcp:127.0.0.1:5762.0', "port '5762.0'"),
    ('tcp:127.0.0.1:٥٧٦٢', 'port'),
    ('tcp:127.0.0.1:5762:5763', 'one colon'),
    ('tcp:[::1]:5762', 'IPv6'),
    ('tcp:local host:5762', 'host'),
    ('http://127.0.0.1:5762', "kind 'http:'"),
    ('upd:127.0.0.1:14550', "kind 'upd:'"),
    ('tcp:no-such-host.invalid:5762', 'cannot be resolved'),
    ('flight.tlog', 'a log is not a vehicle'),
    ('5762', 'neither'),
    ('tcp', 'neither'),
    ('uds:', 'path'),
    ('tcp:127.0.0.1:5762\n', None),
    ('tcp:127.0.0.1\t:5762', 'unprintable'),
])
def test_a_bad_string_is_named_with_the_reason_and_examples(text, why):
    if why is None:
        assert parse_connection(text).port == 5762
        return
    with pytest.raises(ConnectionStringError) as caught:
        parse_connection(text)
    assert repr(text) in str(caught.value)
    assert why in str(caught.value)
    assert "'tcp:127.0.0.1:5762'" in str(caught.value)


@pytest.mark.parametrize('text', [
    'tcp:192.0.2.7:5762', 'udp:0.0.0.0:14550', 'udpin::14550', 'udpout:192.0.2.7:14550',
    'tcpin:0.0.0.0:5790', 'tcp:8.8.8.8:5762', '/dev/ttyACM0,115200', '/dev/ttyACM0'])
def test_what_leaves_this_machine_needs_allow_remote(text):
    with pytest.raises(ConnectionStringError, match='allow_remote'):
        parse_connection(text)
    assert parse_connection(text, allow_remote=True).text == text


def test_a_serial_device_is_taken_with_its_baud_rate():
    target = parse_connection('/dev/ttyACM0,57600', allow_remote=True)
    assert (target.kind, target.device, target.baud) == ('serial', '/dev/ttyACM0', 57600)
    assert parse_connection('/dev/ttyUSB1', allow_remote=True).baud == 115200
    with pytest.raises(ConnectionStringError, match="baud rate 'fast'"):
        parse_connection('/dev/ttyACM0,fast', allow_remote=True)


@pytest.mark.parametrize(('text', 'instance'), [
    ('tcp:127.0.0.1:5760', 0), ('tcp:127.0.0.1:5763', 0), ('tcp:127.0.0.1:5782', 2),
    ('udp:127.0.0.1:14550', 0), ('udp:127.0.0.1:14570', 2),
    ('tcp:127.0.0.1:5765', None), ('tcp:127.0.0.1:40000', None)])
def test_sitl_ports_tell_the_instance(text, instance):
    assert parse_connection(text).sitl_instance == instance


@given(st.one_of(
    st.text(max_size=40),
    st.from_regex(r'(tcp|udp|udpin|udpout|tcpin|uds|serial)?:?[0-9a-z.:\[\],/-]{0,25}',
                  fullmatch=True)))
def test_any_text_is_taken_or_refused_by_its_name(text):
    try:
        target = parse_connection(text, allow_remote=True)
    except ConnectionStringError as error:
        refusal = str(error)
    else:
        refusal = ''
        assert target.text == text.strip()
        assert target.kind in ('uds', 'serial') or 1 <= target.port <= 65535
        assert not re.search(r'\s', target.host)
    assert not refusal or repr(text) in refusal
