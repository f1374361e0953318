"""Command lines: demo, bench, reports, replays."""
