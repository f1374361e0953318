"""MAVLink frames are found whatever surrounds them."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pymavlink.dialects.v20 import ardupilotmega as mavlink

from dryden_wind_ros.sitl.framing import FrameParser

SYSTEM_TIME = mavlink.MAVLINK_MSG_ID_SYSTEM_TIME
ATTITUDE = mavlink.MAVLINK_MSG_ID_ATTITUDE


def frames(count: int, system: int = 1, v1: bool = False) -> list[bytes]:
    codec = mavlink.MAVLink(None, system, 1)
    messages = []
    for number in range(count):
        kind = (codec.system_time_encode(0, number) if number % 2 else
                codec.attitude_encode(number, 0.1, 0.2, 0.3, 0.0, 0.0, 0.0))
        messages.append(bytes(kind.pack(codec, force_mavlink1=v1)))
        codec.seq = (codec.seq + 1) % 256
    return messages


def times(messages) -> list[int]:
    return [message.time_boot_ms for message in messages]


@pytest.mark.parametrize('v1', [False, True])
@given(st.lists(st.integers(1, 60), min_size=1, max_size=40))
def test_frames_are_found_however_the_stream_is_cut(v1, cuts):
    stream = b''.join(frames(20, v1=v1))
    parser = FrameParser({SYSTEM_TIME, ATTITUDE})
    heard, place = [], 0
    for cut in [*cuts, len(stream)]:
        heard += parser.feed(stream[place:place + cut])
        place += cut
    assert times(heard) == list(range(20))
    assert parser.bad == 0


@given(st.binary(max_size=300))
def test_garbage_delays_good_frames_at_most_by_one_frame_length(garbage):
    parser = FrameParser({SYSTEM_TIME, ATTITUDE})
    parser.feed(garbage)
    # A false marker may claim up to 280 bytes; what follows them is there.
    heard = times(parser.feed(b''.join(frames(40))))
    assert heard[-20:] == list(range(20, 40))


def test_a_broken_frame_costs_only_itself():
    stream = frames(10)
    broken = bytearray(stream[4])
    broken[15] ^= 0x55
    stream[4] = bytes(broken)
    heard = FrameParser({SYSTEM_TIME, ATTITUDE}).feed(b''.join(stream))
    assert times(heard) == [0, 1, 2, 3, 5, 6, 7, 8, 9]


def test_a_false_length_does_not_swallow_the_frames_after_it():
    stream = b'\xfd\xff\x00\x00' + b''.join(frames(12))
    heard = FrameParser({SYSTEM_TIME, ATTITUDE}).feed(stream)
    assert times(heard) == list(range(12))


def test_unwanted_messages_and_other_vehicles_are_passed_over():
    parser = FrameParser({SYSTEM_TIME})
    parser.system, parser.component = 7, 1
    stream = b''.join(one + other for one, other in zip(frames(10), frames(10, system=7),
                                                        strict=True))
    heard = parser.feed(stream)
    assert times(heard) == [1, 3, 5, 7, 9]
    assert {message.get_srcSystem() for message in heard} == {7}
    assert parser.frames == 20


def test_ten_thousand_mutated_frames_raise_nothing():
    rng = random.Random(5)
    good = frames(50)
    parser = FrameParser({SYSTEM_TIME, ATTITUDE})
    for _ in range(10_000):
        frame = bytearray(rng.choice(good))
        for _ in range(rng.randint(0, 4)):
            frame[rng.randrange(len(frame))] = rng.randrange(256)
        if rng.random() < 0.2:
            del frame[rng.randrange(len(frame)):]
        parser.feed(bytes(frame))
    parser.feed(bytes(300))
    assert times(parser.feed(b''.join(frames(20)))) == list(range(20))


def numbered(count: int, first: int, salt: int) -> list[bytes]:
    codec = mavlink.MAVLink(None, 1, 1)
    codec.seq = first
    sent = []
    for number in range(count):
        sent.append(bytes(codec.system_time_encode(salt, number).pack(codec)))
        codec.seq = (codec.seq + 1) % 256
    return sent


@given(st.integers(0, 255), st.lists(st.integers(1, 8), min_size=80, max_size=80))
def test_two_senders_with_one_id_are_told_by_the_numbers_of_their_frames(first, turns):
    senders = [iter(numbered(400, 0, 0)), iter(numbered(400, first, 1))]
    parser = FrameParser({SYSTEM_TIME})
    parser.follow(1, 1)
    for turn, size in enumerate(turns):
        for _ in range(size):
            parser.feed(next(senders[turn % 2]))
    assert parser.tangled


@given(st.integers(0, 255), st.integers(0, 2**32))
def test_one_sender_with_losses_late_and_double_frames_is_one(first, seed):
    rng = random.Random(seed)
    sent = [frame for frame in numbered(600, first, 0) if rng.random() > 0.2]
    for place in range(rng.randrange(60), len(sent) - 1, 60 + rng.randrange(40)):
        sent[place:place + 2] = sent[place + 1], sent[place]
    parser = FrameParser({SYSTEM_TIME})
    parser.follow(1, 1)
    for frame in sent:
        parser.feed(frame)
        if rng.random() < 0.3:
            parser.feed(frame)
        assert not parser.tangled
    assert parser.heard == len(sent)


def test_an_echo_that_is_taken_is_not_decoded_and_counts_as_a_frame():
    codec = mavlink.MAVLink(None, 1, 1)
    frames = []
    for i, (name, value) in enumerate([(b'SIM_WIND_SPD', 8.5), (b'SIM_WIND_DIR', 0.0),
                                       (b'EK3_ENABLE', 1.0)]):
        codec.seq = i
        frames.append(mavlink.MAVLink_param_value_message(name, value, 9, 400, 65535).pack(codec))
    parser = FrameParser({mavlink.MAVLINK_MSG_ID_PARAM_VALUE})
    told = []
    parser.on_echo = lambda name, value: told.append((name, value)) or name != b'EK3_ENABLE'
    messages = parser.feed(b''.join(frames))
    assert told == [(b'SIM_WIND_SPD', 8.5), (b'SIM_WIND_DIR', 0.0), (b'EK3_ENABLE', 1.0)]
    assert [message.param_id for message in messages] == ['EK3_ENABLE']
    assert parser.frames == 3
    # A frame that was damaged on the way is told to nobody.
    broken = bytearray(frames[0])
    broken[12] ^= 1
    assert parser.feed(bytes(broken)) == []
    assert len(told) == 3
