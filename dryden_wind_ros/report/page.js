'use strict';
(() => {
  const REPORT = JSON.parse(document.getElementById('report-data').textContent);
  const COLOURS = {
    light: {
      ink: '#18222d', muted: '#55636f', grid: '#e1e7ec', hover: '#ffffff',
      u: '#0b63a5', v: '#b3470b', w: '#197a4b', a: '#6aa5d3', b: '#a8320c', model: '#6b7783',
      band: 'rgba(107,119,131,0.22)', whole: '#0b63a5', mean: '#b3470b', flown: '#6b7783',
      estimate: '#b0202e', error: '#b0202e',
      scale0: '#c6dcf0', scale1: '#93c3df', scale2: '#5aa2cf', scale3: '#2b7bba', scale4: '#0b559f', scale5: '#08306b',
    },
    dark: {
      ink: '#e6edf3', muted: '#9fb0bf', grid: '#293541', hover: '#19222b',
      u: '#5cb3f5', v: '#f5a15c', w: '#63d297', a: '#3f80b5', b: '#ffb08c', model: '#9fb0bf',
      band: 'rgba(159,176,191,0.22)', whole: '#5cb3f5', mean: '#f5a15c', flown: '#9fb0bf',
      estimate: '#ff8087', error: '#ff8087',
      scale0: '#173b5e', scale1: '#1f5688', scale2: '#2f77b5', scale3: '#5299d3', scale4: '#8bbfe8', scale5: '#d3e8fa',
    },
  };

  // ------------------------------------------------------------------ columns

  const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const cache = new Map();
  function column(name) {
    if (!cache.has(name)) {
      const packed = REPORT.columns[name];
      let values;
      if (packed.f32 !== undefined) {
        values = Float64Array.from(new Float32Array(bytes(packed.f32).buffer), (x) => x + packed.start);
      } else {
        values = Float64Array.from(new Int16Array(bytes(packed.i16).buffer),
          (q) => (q === -32768 ? NaN : packed.low + (q + 32767) * packed.step));
      }
      cache.set(name, values);
    }
    return cache.get(name);
  }

  function lowerBound(values, wanted) {
    let low = 0, high = values.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (values[middle] < wanted) low = middle + 1; else high = middle;
    }
    return low;
  }

  // The least and the greatest value of each pixel, in order; everything if there is room for it.
  function visible(series, range, pixels) {
    const x = column(series.x), y = column(series.y);
    const first = range ? Math.max(0, lowerBound(x, range[0]) - 1) : 0;
    const last = range ? Math.min(x.length, lowerBound(x, range[1]) + 1) : x.length;
    const xs = [], ys = [];
    const take = (i) => { xs.push(x[i]); ys.push(Number.isNaN(y[i]) ? null : y[i]); };
    const each = (last - first) / pixels;
    if (each <= 3) {
      for (let i = first; i < last; i++) take(i);
      return [xs, ys];
    }
    for (let p = 0; p < pixels; p++) {
      const from = first + Math.floor(p * each), to = first + Math.floor((p + 1) * each);
      let low = -1, high = -1, hole = -1;
      for (let i = from; i < to; i++) {
        if (Number.isNaN(y[i])) hole = i;
        else {
          if (low < 0 || y[i] < y[low]) low = i;
          if (high < 0 || y[i] > y[high]) high = i;
        }
      }
      for (const i of [...new Set([low, high, hole])].filter((k) => k >= 0).sort((a, b) => a - b)) take(i);
    }
    return [xs, ys];
  }

  // ------------------------------------------------------------------- themes

  const media = window.matchMedia('(prefers-color-scheme: dark)');
  const CHOICES = ['auto', 'light', 'dark'];
  let choice = 'auto';
  try { choice = localStorage.getItem('wind-report-theme') || 'auto'; } catch { /* a file may have no storage */ }
  if (!CHOICES.includes(choice)) choice = 'auto';
  let printing = false;
  const theme = () => (printing ? 'light' : choice === 'auto' ? (media.matches ? 'dark' : 'light') : choice);

  function paint(trace, colours) {
    const role = trace.meta && trace.meta.role;
    const colour = colours[role];
    if (!colour) return trace;
    const painted = { ...trace };
    if (trace.type === 'barpolar' || trace.type === 'bar') {
      painted.marker = { ...trace.marker, color: colour };
    } else {
      painted.line = { ...trace.line, color: colour };
      painted.marker = { ...trace.marker, color: colour, line: { ...(trace.marker || {}).line, color: colour } };
      if (trace.fill) { painted.fillcolor = colour; painted.line.color = 'rgba(0,0,0,0)'; }
      if (trace.error_x) painted.error_x = { ...trace.error_x, color: colour };
    }
    return painted;
  }

  const tall = (plot) => Math.round(plot.height * (printing ? 0.78 : 1));

  function paper(layout, colours, plot, narrow) {
    const painted = structuredClone(layout);
    Object.assign(painted, {
      paper_bgcolor: 'rgba(0,0,0,0)', plot_bgcolor: 'rgba(0,0,0,0)', height: tall(plot),
      font: { family: 'system-ui, sans-serif', size: narrow ? 11 : 12, color: colours.ink },
      hoverlabel: { bgcolor: colours.hover, bordercolor: colours.muted, font: { color: colours.ink } },
      margin: { l: narrow ? 50 : 62, r: narrow ? 8 : 16, t: narrow ? 64 : 56, b: 44 },
      legend: { orientation: 'h', x: 0, y: 1, yanchor: 'bottom', xanchor: 'left', bgcolor: 'rgba(0,0,0,0)',
        font: { size: narrow ? 10 : 12 } },
      modebar: { bgcolor: 'rgba(0,0,0,0)', color: colours.muted, activecolor: colours.ink, orientation: 'h' },
    });
    for (const key of Object.keys(painted)) {
      if (/^[xy]axis/.test(key)) {
        Object.assign(painted[key], { gridcolor: colours.grid, linecolor: colours.grid, zerolinecolor: colours.grid, automargin: false });
        if (painted[key].title) painted[key].title.standoff = 6;
      }
    }
    if (painted.polar) {
      painted.polar.bgcolor = 'rgba(0,0,0,0)';
      for (const axis of ['angularaxis', 'radialaxis']) Object.assign(painted.polar[axis], { gridcolor: colours.grid, linecolor: colours.grid });
      painted.margin = { l: 40, r: 40, t: 48, b: 30 };
      painted.legend = { ...painted.legend, y: -0.06, yanchor: 'top' };
      painted.margin.b = narrow ? 90 : 70;
    }
    // Names of bands sit above the plot, the legend above them.
    const named = (painted.annotations || []).filter((a) => a.name === 'phase');
    if (named.length) {
      painted.margin.t = narrow ? 84 : 76;
      painted.legend.y = 1 + 20 / (tall(plot) - painted.margin.t - 44);
      const width = plot.div.clientWidth || 800;
      const shown = painted.annotations.filter((a) => a.name !== 'phase');
      const [begin, end] = plot.extent || [0, 1];
      for (const a of named) {
        const shape = painted.shapes.find((s) => s.x0 <= a.x && a.x <= s.x1);
        if ((shape.x1 - shape.x0) / (end - begin) * (width - 80) > 6.4 * a.text.length) shown.push({ ...a, font: { size: 11, color: colours.muted } });
      }
      painted.annotations = shown;
    }
    return painted;
  }

  // -------------------------------------------------------------------- plots

  const plots = REPORT.plots.map((plot) => ({ ...plot, div: document.getElementById(plot.key), range: null }));
  // Named one by one: what is not named (links to services among them) is not there.
  const BUTTONS = {
    wide: [['toImage', 'zoom2d', 'pan2d', 'zoomIn2d', 'zoomOut2d', 'resetScale2d']],
    narrow: [['toImage', 'pan2d', 'resetScale2d']], polar: [['toImage']],
  };
  let painting = false;

  function own(plot) {
    const ends = plot.data.filter((t) => t.meta && t.meta.series).map((t) => column(t.meta.series.x)).filter((x) => x.length);
    return ends.length ? [Math.min(...ends.map((x) => x[0])), Math.max(...ends.map((x) => x[x.length - 1]))] : null;
  }

  // Linked plots show the same time from the start, however long each of their lines is.
  const extents = new Map();
  function extent(plot) {
    if (!own(plot) || !plot.linked) return own(plot);
    if (!extents.has(plot.linked)) {
      const all = plots.filter((p) => p.linked === plot.linked).map(own).filter((x) => x);
      extents.set(plot.linked, [Math.min(...all.map((x) => x[0])), Math.max(...all.map((x) => x[1]))]);
    }
    return extents.get(plot.linked);
  }

  function data(plot, colours) {
    const pixels = Math.max(200, Math.round(plot.div.clientWidth || 800));
    return plot.data.map((trace) => {
      const painted = paint(trace, colours);
      if (trace.meta && trace.meta.series) [painted.x, painted.y] = visible(trace.meta.series, plot.range, pixels);
      return painted;
    });
  }

  async function draw(plot) {
    const colours = COLOURS[theme()];
    plot.extent ??= extent(plot);
    const narrow = plot.div.clientWidth < 560;
    const layout = paper(plot.layout, colours, plot, narrow);
    if (printing) layout.width = plot.div.clientWidth;
    if (plot.extent) {
      for (const key of Object.keys(layout)) if (/^xaxis/.test(key)) { layout[key].range = [...(plot.range || plot.extent)]; layout[key].autorange = false; }
    }
    await Plotly.react(plot.div, data(plot, colours), layout, { responsive: true, displaylogo: false,
      // On a phone two fingers do what the toolbar does, and it would lie on the legend.
      displayModeBar: printing || document.documentElement.clientWidth < 560 ? false : 'hover',
      modeBarButtons: layout.polar ? BUTTONS.polar : narrow ? BUTTONS.narrow : BUTTONS.wide });
  }

  function zoomed(plot, change) {
    if (painting) return;
    let range = null, reset = false;
    for (const [key, value] of Object.entries(change)) {
      if (/^xaxis\d*\.range$/.test(key)) range = value;
      else if (/^xaxis\d*\.range\[0\]$/.test(key)) range = [value, change[key.replace('[0]', '[1]')]];
      else if (/^xaxis\d*\.autorange$/.test(key)) reset = true;
    }
    if (!range && !reset) return;
    const same = plot.linked ? plots.filter((p) => p.linked === plot.linked) : [plot];
    painting = true;
    Promise.all(same.map((p) => {
      p.range = range;
      if (p.drawn && (p.extent || p === plot)) return p.extent ? draw(p) : null;
      return null;
    })).finally(() => { painting = false; });
  }

  async function show(plot) {
    if (plot.drawn) return;
    plot.drawn = true;
    await draw(plot);
    plot.div.on('plotly_relayout', (change) => { if (plot.extent) zoomed(plot, change); });
    plot.div.on('plotly_doubleclick', () => { if (plot.extent) { zoomed(plot, { 'xaxis.autorange': true }); return false; } return undefined; });
  }

  const button = document.getElementById('theme');
  function dress() {
    document.documentElement.dataset.theme = theme();
    button.textContent = `Theme: ${choice}`;
    for (const plot of plots) if (plot.drawn) draw(plot);
  }
  button.addEventListener('click', () => {
    choice = CHOICES[(CHOICES.indexOf(choice) + 1) % CHOICES.length];
    try { localStorage.setItem('wind-report-theme', choice); } catch { /* as above */ }
    dress();
  });
  media.addEventListener('change', dress);
  dress();

  let resized = 0;
  window.addEventListener('resize', () => {
    clearTimeout(resized);
    resized = setTimeout(() => { for (const plot of plots) if (plot.drawn) draw(plot); }, 150);
  });

  // ------------------------------------------------------------ folded parts

  const shut = (plot) => plot.div.closest('details:not([open])') !== null;
  for (const part of document.querySelectorAll('details.part')) {
    part.addEventListener('toggle', () => {
      if (part.open) for (const plot of plots) if (part.contains(plot.div)) show(plot);
    });
  }
  // A link to a part, or into one, opens it.
  function open(anchor) {
    const target = anchor && document.getElementById(decodeURIComponent(anchor.slice(1)));
    const part = target && target.closest('details.part');
    if (part && !part.open) { part.open = true; target.scrollIntoView(); }
  }
  window.addEventListener('hashchange', () => open(location.hash));
  document.addEventListener('click', (event) => {
    const link = event.target.closest('a[href^="#"]');
    if (link) open(link.getAttribute('href'));
  });
  open(location.hash);

  // ---------------------------------------------------------------- printing

  // Paper is white and of one width: plots are drawn for it, and anew for the screen afterwards.
  window.addEventListener('beforeprint', () => {
    printing = true;
    document.documentElement.classList.add('printing');
    dress();
  });
  window.addEventListener('afterprint', () => {
    printing = false;
    document.documentElement.classList.remove('printing');
    dress();
  });

  // Drawn one after the other, top first, so that the page can be read at once.
  (async () => {
    for (const plot of plots) {
      if (!shut(plot)) await show(plot);
      await new Promise((done) => setTimeout(done, 0));
    }
    document.documentElement.dataset.ready = 'yes';
  })();
})();
