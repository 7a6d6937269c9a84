import { scaleBand, scaleLinear } from 'd3-scale';

/** A day's dollars, for drawing alone. */
export interface ChartDay {
  /** Below its bars, e.g. `9 Oct`. */
  label: string;
  billed: number;
  expected: number;
}

const WIDTH = 720;
const HEIGHT = 250;
const MARGIN = { top: 12, right: 14, bottom: 28, left: 62 };
const LABELS_MAX = 11;
const INK = '#0f172a';
const MUTED = '#64748b';
const GRID = '#e2e8f0';
const BILLED = '#c2410c';
const EXPECTED = '#0f766e';

/** Billed against expected by day, as an SVG of fixed size; the same days give the same text. */
export function dayChart(days: readonly ChartDay[]): string {
  const most = Math.max(...days.flatMap(({ billed, expected }) => [billed, expected]), 0.01);
  const y = scaleLinear([0, most], [HEIGHT - MARGIN.bottom, MARGIN.top]).nice(4);
  const x = scaleBand(
    days.map((_day, at) => String(at)),
    [MARGIN.left, WIDTH - MARGIN.right],
  )
    .paddingInner(days.length > 1 ? 0.34 : 0)
    .paddingOuter(days.length > 6 ? 0.2 : 0.5);
  const width = Math.min(x.bandwidth(), 72);
  const every = Math.ceil(days.length / LABELS_MAX);
  const base = y(0);
  const format = y.tickFormat(4, most < 4 ? '$,.2f' : '$,.0f');
  const grid = y
    .ticks(4)
    .flatMap((tick) => [
      `<line x1="${MARGIN.left}" x2="${WIDTH - MARGIN.right}" y1="${at(y(tick))}" y2="${at(y(tick))}" stroke="${tick === 0 ? MUTED : GRID}" stroke-width="${tick === 0 ? 1 : 0.8}"/>`,
      `<text x="${MARGIN.left - 10}" y="${at(y(tick) + 4)}" text-anchor="end" fill="${MUTED}">${format(tick)}</text>`,
    ]);
  const bars = days.flatMap((day, place) => {
    const left = (x(String(place)) ?? 0) + (x.bandwidth() - width) / 2;
    const half = width / 2;
    const bar = (from: number, value: number, fill: string) =>
      `<rect x="${at(from)}" y="${at(y(value))}" width="${at(Math.max(half - 0.8, 0.8))}" height="${at(Math.max(base - y(value), 0))}" fill="${fill}"/>`;
    const label =
      place % every === 0
        ? [
            `<text x="${at(left + half)}" y="${HEIGHT - 8}" text-anchor="middle" fill="${INK}">${escapeXml(day.label)}</text>`,
          ]
        : [];
    return [bar(left, day.billed, BILLED), bar(left + half, day.expected, EXPECTED), ...label];
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${HEIGHT}" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="Inter" font-size="12">`,
    ...grid,
    ...bars,
    '</svg>',
  ].join('');
}

const at = (value: number): string => String(Math.round(value * 100) / 100);

const escapeXml = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
