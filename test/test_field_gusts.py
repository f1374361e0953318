"""What the report says of flights in a field: the seed's own gusts, and two flights by distance."""

import dataclasses
import json

import numpy as np
import pytest
from support.bags import AirSettings, fly, write_bag

from dryden_wind_ros.logs.reader import read_flights
from dryden_wind_ros.report.field_gusts import Together, check_field, together
from dryden_wind_ros.report.sections.field import by_distance
from dryden_wind_ros.tools.wind_report import main

FIELD = AirSettings(mean_speed=8.0, mean_from_deg=250.0, seed=7, gusts='field', scale=1.5,
                    field_modes=512, ground_height=2.0)


def vehicle(namespace, east, settings=FIELD, seconds=240.0, **more):
    return fly(settings, seconds, namespace=namespace, height=lambda t: 30.0,
               place=lambda t: (east, 0.0), **more)


@pytest.fixture(scope='module')
def bag(tmp_path_factory):
    """Two vehicles 5 m apart in one field, and a third in another."""
    path = tmp_path_factory.mktemp('bags') / 'field'
    write_bag(path, [*vehicle('/one', 0.0), *vehicle('/two', 5.0),
                     *vehicle('/odd', 5.0, dataclasses.replace(FIELD, seed=8), 60.0)])
    return path


@pytest.fixture(scope='module')
def flights(bag):
    return {flight.namespace: flight for flight in read_flights(bag)}


def test_gusts_of_a_field_are_computed_again_from_the_record(flights):
    for flight in flights.values():
        found = check_field(flight)
        assert len(found) == len(flight.air)
        assert found.of_seed == len(found)
        assert found.off.max() < 1e-4


def test_a_record_of_another_seed_is_told(flights):
    flight = flights['one']
    other = dataclasses.replace(flight, settings=tuple(
        dataclasses.replace(one, seed=8) for one in flight.settings))
    assert check_field(other).of_seed == 0


def test_two_vehicles_of_one_air_differ_as_theory_says_for_their_distance(flights):
    found = together(flights['one'], flights['two'])
    assert isinstance(found, Together)
    assert found.fits
    np.testing.assert_allclose(found.distance, 5.0, atol=0.01)
    np.testing.assert_allclose(found.correlation.mean(axis=0),
                               found.correlation_theory.mean(axis=0), atol=0.06)


def test_vehicles_of_other_airs_are_told_apart(flights):
    assert together(flights['one'], flights['odd']) == 'seed is 7 and 8: two airs'
    claimed = dataclasses.replace(flights['odd'], settings=flights['one'].settings)
    found = together(flights['one'], claimed)
    assert isinstance(found, Together)
    assert not found.fits


def test_the_page_says_whose_gusts_they_are_and_how_two_flights_fit(bag, tmp_path):
    page = tmp_path / 'page.html'
    one, two = (tmp_path / name for name in ('a', 'b'))
    write_bag(one, vehicle('', 0.0, seconds=60.0))
    write_bag(two, vehicle('', 5.0, seconds=60.0))
    main([str(one), str(two), '-o', str(page)])
    text = page.read_text()
    assert '1201 of 1201 recorded gusts are those of the field of seed 7' in text
    assert 'the gusts differ as they should at these distances: one air' in text


def test_vehicles_of_a_fleet_stand_beside_theory_by_distance(bag, tmp_path):
    page, told = tmp_path / 'page.html', tmp_path / 'told.json'
    assert main([str(bag), '-o', str(page), '--json', str(told), '--check']) == 0
    text = page.read_text()
    assert 'Vehicles in one field' in text
    assert 'the pair fits one air' in text  # the third vehicle has an air of its own
    pairs = {(one['a'][-3:], one['b'][-3:]): one
             for one in json.loads(told.read_text())['vehicles_in_one_field']}
    # The pair is across a wind from 250 degrees by 70 degrees: w by its g, exp(-r/L) (1 - r/2L).
    ratio = 5.0 / 28.0
    w = np.array(pairs['one', 'two']['correlation_theory'])[:, 2]
    np.testing.assert_allclose(w, np.exp(-ratio) * (1.0 - ratio / 2.0), atol=1e-3)


def test_frames_with_other_zeros_are_told(flights):
    def at(flight, latitude):
        further = flight.air.further.copy()
        further[5:8] = [[latitude], [149.0], [584.0]]
        return dataclasses.replace(flight, air=dataclasses.replace(flight.air, further=further))
    a = at(flights['one'], -35.0)
    assert by_distance(a, at(flights['two'], -35.0)).count('apart on the earth') == 0
    # One degree of latitude is 111.2 km.
    assert '111 m apart on the earth' in by_distance(a, at(flights['two'], -35.001))
