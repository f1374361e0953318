"""The page of wind_report in a real browser: loads offline, shows everything, fits and dresses."""

from __future__ import annotations

import dataclasses
import math
from itertools import pairwise

import pytest
from support import wait_until
from support.bags import AirSettings, ekf_winds, fly, write_bag
from support.browser import Browser, find_browser

from dryden_wind_ros.campaign import plan as plans
from dryden_wind_ros.campaign.compare import verdict
from dryden_wind_ros.campaign.flight import identity
from dryden_wind_ros.campaign.page import render
from dryden_wind_ros.tools.wind_report import main

pytestmark = pytest.mark.skipif(
    find_browser() is None,
    reason='no Chromium on this machine (Debian: apt install chromium): the page was not looked at')

BREEZE = AirSettings(mean_speed=8.0, mean_from_deg=350.0, seed=7)
PHASES = ((0.0, 20.0, 'ground'), (20.0, 21.0, 'init'), (21.0, 60.0, 'learning'),
          (60.0, 80.0, 'coast'), (80.0, 84.0, 'relearn'), (84.0, 150.0, 'learning'))


@pytest.fixture(scope='module')
def pages(tmp_path_factory):
    """A page of one flight, and one of an A/B pair."""
    folder = tmp_path_factory.mktemp('pages')
    a = write_bag(folder / 'first', [*fly(BREEZE, 150.0, missed=lambda k: k % 97 == 0), *ekf_winds(
        PHASES, lambda t: (1.0 + math.sin(t), -8.0), lambda t: (1.5, -7.0 - math.sin(t / 9)))])
    b = write_bag(folder / 'second', fly(
        dataclasses.replace(BREEZE, scale=1.2), 120.0, height=lambda t: 10.0 + t / 20))
    assert main([str(a), '-o', str(folder / 'one.html')]) == 0
    assert main([str(a), str(b), '-o', str(folder / 'ab.html')]) == 0
    return folder


@pytest.fixture(scope='module')
def browser():
    with Browser() as opened:
        yield opened


def load(browser, path):
    browser.open(path)
    wait_until(lambda: browser.evaluate("document.documentElement.dataset.ready === 'yes'"), 60.0,
               f'all plots of {path.name}; {browser.complaints}')


@pytest.mark.parametrize('dark', [False, True], ids=['light', 'dark'])
@pytest.mark.parametrize('width', [1280, 400])
@pytest.mark.parametrize('name', ['one', 'ab'])
def test_the_page_loads_shows_all_and_fits(pages, browser, name, width, dark):
    browser.show(width, dark=dark)
    load(browser, pages / f'{name}.html')

    assert browser.complaints == []
    assert browser.requests == [(pages / f'{name}.html').as_uri()]
    plots = browser.evaluate("""[...document.querySelectorAll('.plot')].map((div) => ({
        key: div.id, width: div.getBoundingClientRect().width, traces: (div.data || []).length,
        empty: (div.data || []).filter((t) => (t.y || t.r || []).length === 0).length,
        drawn: div.querySelectorAll('.scatterlayer .trace, .barlayer .trace, .barpolar').length,
    }))""")
    assert len(plots) == (15 if name == 'one' else 3 + 15 + 14)  # the second has no ekf_wind
    for plot in plots:
        assert plot['traces'] > 0, plot
        assert plot['empty'] == 0, plot
        assert plot['drawn'] > 0, plot
        assert 0 < plot['width'] <= width, plot
    assert browser.evaluate('document.documentElement.scrollWidth') <= width
    background = browser.evaluate('getComputedStyle(document.body).backgroundColor')
    assert background == ('rgb(17, 23, 29)' if dark else 'rgb(255, 255, 255)')


def test_headings_go_down_step_by_step_and_plots_have_names(pages, browser):
    browser.show(1280)
    load(browser, pages / 'ab.html')

    levels = browser.evaluate(
        "[...document.querySelectorAll('h1,h2,h3,h4')].map((h) => Number(h.tagName[1]))")
    assert levels.count(1) == 1
    assert levels[0] == 1
    assert all(b <= a + 1 for a, b in pairwise(levels))
    assert browser.evaluate(
        "[...document.querySelectorAll('.plot, .table')].every((e) => e.ariaLabel)")
    assert browser.evaluate("[...document.querySelectorAll('nav a')].every("
                            "(a) => document.querySelector(a.getAttribute('href')))")


def test_the_button_changes_the_theme(pages, browser):
    browser.show(1280)
    load(browser, pages / 'one.html')

    seen = []
    for _ in range(3):
        browser.evaluate("document.getElementById('theme').click()")
        seen.append(browser.evaluate("document.getElementById('theme').textContent + ' ' + "
                                     'document.documentElement.dataset.theme'))

    assert seen == ['Theme: light light', 'Theme: dark dark', 'Theme: auto light']


def test_zooming_in_shows_every_tick_and_takes_the_other_plots_along(pages, browser):
    browser.show(1280)
    load(browser, pages / 'one.html')
    shown = "document.getElementById('f0-gust').data[0].x.length"
    at_first = browser.evaluate(shown)

    browser.evaluate(
        "void Plotly.relayout('f0-gust', {'xaxis.range[0]': 50, 'xaxis.range[1]': 60})")

    # 10 s are 200 ticks, but for two that were missed, and one more at either side
    wait_until(lambda: 195 <= browser.evaluate(shown) <= 203, 20.0, 'the ticks zoomed in on')
    assert at_first > 1000
    wait_until(lambda: browser.evaluate("document.getElementById('f0-ekf').layout.xaxis.range")
               == [50, 60], 20.0, 'the plot of the estimate, at the same time')


def test_a_printed_page_is_white_and_as_wide_as_the_paper(pages, browser):
    browser.show(1280, dark=True)
    load(browser, pages / 'one.html')

    browser.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    wait_until(lambda: browser.evaluate(
        "[...document.querySelectorAll('.plot .main-svg')].every((s) => s.clientWidth <= 680)"),
        30.0, 'plots as narrow as the paper')
    ink = "document.getElementById('f0-gust').layout.font.color"
    assert browser.evaluate('document.documentElement.dataset.theme') == 'light'
    assert browser.evaluate(ink) == '#18222d'
    browser.evaluate("window.dispatchEvent(new Event('afterprint'))")
    wait_until(lambda: browser.evaluate(ink) == '#e6edf3', 30.0, 'the dark theme again')


def test_linked_plots_show_the_same_time(pages, browser):
    browser.show(400)
    load(browser, pages / 'one.html')

    ranges = browser.evaluate(
        "['gust', 'wind', 'height', 'ekf', 'ticks'].map((name) => "
        "document.getElementById('f0-' + name).layout.xaxis.range.map(Math.round).join())")
    assert set(ranges) == {'0,150'}
    assert browser.evaluate("document.querySelectorAll('.modebar').length") == 0  # on a phone


def test_the_page_of_a_campaign_shows_every_variant_and_fits(tmp_path, browser):
    (tmp_path / 'plan.yaml').write_text(
        'variants: {a: , b: {seed: 1}, c: {seed: 2}}\nwinds: {speed: [3, 6], seeds: {count: 15}}\n'
        'limits: [{measure: tilt_max, most: 20}]\n')
    plan = plans.load(tmp_path / 'plan.yaml')
    rows = [{**identity(one), 'failed': one.index == 5, 'failure': '<crash>' * (one.index == 5),
             'tilt_max': 20.0 + one.seed + 9.0 * (one.variant == 'b'),
             'position_error_max': 1.0 + one.index / 100.0} for one in plan.entries]
    page = tmp_path / 'index.html'
    page.write_text(render(plan, rows, verdict(plan, rows), 'wind_campaign plan.yaml --only'))
    browser.show(400, dark=False)
    load(browser, page)
    assert browser.complaints == []
    assert browser.evaluate('document.documentElement.scrollWidth') <= 400
    # The verdict is on the screen, beside its measure, and no row is a screenful
    assert browser.evaluate("""[...document.querySelectorAll('#v1 td:nth-child(2)')].every(
        (cell) => cell.getBoundingClientRect().right <= 400)""")
    assert browser.evaluate(
        "Math.max(...[...document.querySelectorAll('#v1 tr')].map((row) => row.offsetHeight))"
        ) < 130
    assert browser.evaluate("""[...document.querySelectorAll('.plot')].map(
        (div) => div.querySelectorAll('.boxlayer .trace, .scatterlayer .trace').length)
        """) == [3, 3, 3, 3]
    shown = browser.evaluate('document.body.innerText')
    assert 'tilt_max: worse: +9 deg' in shown
    assert '<crash>' in shown
    assert f'wind_campaign plan.yaml --only {plan.entries[5].key}' in shown
