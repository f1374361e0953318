"""Pictures of the air, made for real."""

import pytest
from PIL import Image

from dryden_wind_ros.tools import air

SMALL = ['--modes', '256', '--seed', '7']


def test_it_draws_a_slice_with_its_statistics_and_an_animation(tmp_path):
    picture, moving = tmp_path / 'air.png', tmp_path / 'air.gif'
    assert air.main([*SMALL, '-o', str(picture), '--animate', str(moving), '--seconds', '0.3',
                     '--plane', 'vertical']) == 0
    with Image.open(picture) as image:
        assert image.size[0] > 1000
        assert len(image.convert('RGB').getcolors(1 << 24)) > 500
    with Image.open(moving) as image:
        assert image.n_frames == 3


@pytest.mark.parametrize(('arguments', 'message'), [
    (['--modes', '0'], 'modes is 0; it must be from 1 to 65536'),
    (['--wind', 'nan'], '--wind is nan; it must be from 0 to 60'),
    (['--severity', 'x'], "severity is 'x'; it must be one of light"),
    (['-o', '/nowhere/air.png'], '/nowhere/air.png cannot be written: No such file'),
    (['--animate', 'air.mov'], "air.mov has the suffix '.mov'; it must be .gif or .mp4")])
def test_what_cannot_be_drawn_is_refused(arguments, message, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as refused:
        air.main(['--modes', '64', *arguments])
    assert refused.value.code == 2
    assert message in ' '.join(capsys.readouterr().err.split())
