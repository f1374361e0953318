"""Who is in a fleet: names, ports, seeds, and what is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dryden_wind_ros.sitl.fleet import (
    FleetError,
    deal,
    derived_seed,
    listed,
    load,
    numbered,
    processes_for,
)


def test_vehicles_by_number_follow_sitls_ports():
    fleet = numbered(3, seed=7)
    assert [v.name for v in fleet] == ['vehicle_1', 'vehicle_2', 'vehicle_3']
    # SERIAL1 of instance I listens on 5762 + 10 I.
    assert [v.connection for v in fleet] == [f'tcp:127.0.0.1:{p}' for p in (5762, 5772, 5782)]
    assert len({v.seed for v in fleet}) == 3


def test_a_run_can_be_repeated_and_same_air_gives_equal_seeds():
    assert numbered(5, seed=7) == numbered(5, seed=7)
    assert {v.seed for v in numbered(5, seed=7, same_air=True)} == {7}


@given(st.lists(st.integers(0, 2**40), min_size=2, max_size=20, unique=True))
def test_fleets_of_different_seeds_share_no_vehicles_seed(seeds):
    derived = [derived_seed(seed, index) for seed in seeds for index in range(10)]
    # 200 hashes of 32 bits: a collision has a chance of one in 200 000
    assert len(derived) - len(set(derived)) <= 1


def test_a_file_says_who_flies_in_which_wind(tmp_path):
    path = tmp_path / 'fleet.yaml'
    path.write_text("""
- name: scout
  seed: 12
  wind: {mean_wind.speed: 9.0}
- {instance: 4, system_id: 5, wind: {scenario: winds/front.yaml}}
-
""")
    scout, second, third = load(path, seed=1)
    assert (scout.name, scout.seed, scout.wind) == ('scout', 12, {'mean_wind.speed': 9.0})
    assert (second.name, second.system_id) == ('vehicle_2', 5)
    assert second.connection == 'tcp:127.0.0.1:5802'
    assert second.wind == {'scenario': str(tmp_path / 'winds' / 'front.yaml')}
    assert (third.instance, third.connection) == (5, 'tcp:127.0.0.1:5812')


@pytest.mark.parametrize(('entries', 'named'), [
    ([], 'there are 0 vehicles'),
    ([{'nam': 'a'}], 'vehicle 1: nam is unknown; known are name, instance'),
    ([{'name': '1st'}], "vehicle 1: name is '1st'"),
    ([{'instance': -1}], 'vehicle 1: instance is -1; it must be a whole number from 0 to 999'),
    ([{'seed': 1.5}], 'vehicle 1: seed is 1.5'),
    ([{'system_id': 256}], 'vehicle 1: system_id is 256'),
    ([{'wind': 'strong'}], "vehicle 1: wind is 'strong'"),
    ([{'wind': []}], 'vehicle 1: wind is'),
    ([{'wind': {1: 2}}], 'vehicle 1: wind has 1: 2; it must be the full name of a parameter'),
    ([{'wind': {'mean_wind': {'speed': 8.0}}}], "vehicle 1: wind has 'mean_wind'"),
    (['scout'], "vehicle 1 is 'scout'"),
    ([{'name': 'a'}, {'name': 'a'}], 'vehicles 1 and 2 are both named a'),
    ([{'instance': 1}, {'instance': 1}], r'vehicles 1 and 2 may be the same system on tcp'),
    ([{'name': 'a', 'connection': 'udp:127.0.0.1:1', 'system_id': 3},
      {'name': 'b', 'connection': 'udp:127.0.0.1:1', 'system_id': 3}], 'system_id 3 and 3'),
    ([{'name': 'a', 'connection': 'tcp:127.0.0.1:6162', 'system_id': 3},
      {'name': 'b', 'connection': 'TCP:localhost:6162', 'system_id': 3}], 'system_id 3 and 3'),
    ([{'name': 'a', 'connection': 'udp:127.0.0.1:1', 'system_id': 3},
      {'name': 'b', 'connection': 'udp:127.0.0.1:1'}], 'system_id 3 and 0'),
])
def test_what_is_wrong_is_named(entries, named):
    with pytest.raises(FleetError, match=named):
        listed(entries, seed=1)


@pytest.mark.parametrize(('text', 'named'), [
    ('{a: [', 'is not YAML'), ('just words', 'must hold a list')])
def test_a_file_that_is_no_fleet_is_refused(tmp_path, text, named):
    path = tmp_path / 'fleet.yaml'
    path.write_text(text)
    with pytest.raises(FleetError, match=named):
        load(path, seed=1)
    with pytest.raises(FleetError, match='cannot be read'):
        load(tmp_path / 'none.yaml', seed=1)


@given(st.lists(st.integers(0, 8), min_size=1, max_size=40), st.integers(1, 6))
def test_a_fleet_is_dealt_evenly_and_vehicles_of_one_connection_stay_together(ports, parts):
    fleet = listed([{'connection': f'udp:127.0.0.1:{14550 + port}', 'system_id': i + 1}
                    for i, port in enumerate(ports)], seed=1)
    dealt = deal(fleet, parts)
    assert len(dealt) == parts
    assert sorted(v.name for part in dealt for v in part) == sorted(v.name for v in fleet)
    for part in dealt:
        assert part == [v for v in fleet if v in part]  # in the order of the fleet
    homes = {}
    for number, part in enumerate(dealt):
        for vehicle in part:
            assert homes.setdefault(vehicle.connection, number) == number


def test_a_hundred_vehicles_are_dealt_alike_to_the_cores_that_there_are():
    assert [len(part) for part in deal(numbered(100, seed=1), 2)] == [50, 50]
    assert [processes_for(n, 2) for n in (1, 50, 51, 100, 250)] == [1, 1, 2, 2, 2]
    assert processes_for(250, 16) == 5
