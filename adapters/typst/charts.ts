import { scaleBand, scaleLinear, scalePoint } from 'd3-scale';
import type { ChartDrawing, ChartPoint, ChartUnit } from '../../domain/reports/sectionParts.js';

/** Charts of documents as SVG of one width; the same figures result in the same text. */

export const CHART_WIDTH = 720;
const HEIGHT = 230;
const MARGIN = { top: 12, right: 14, bottom: 28, left: 62 };
const LABELS_MAX = 11;
export const CHART_INK = '#0f172a';
export const CHART_MUTED = '#64748b';
const GRID = '#e2e8f0';
const STRONG = '#1e293b';
const MIDDLE = '#64748b';
const LIGHT = '#cbd5e1';

/** Series from dark to light, so that they differ in grey print too; the first is the accent where it is alone. */
const fillsOf = (series: number, accent: string): readonly string[] =>
  series === 1 ? [accent] : series === 2 ? [STRONG, '#94a3b8'] : [STRONG, '#7c8ba1', LIGHT];

/** A drawing as SVG, and what its colours mean, where there are several. */
export function drawChart(
  drawing: ChartDrawing,
  accent: string,
): { svg: string; legend: { color: string; name: string }[] } {
  if (drawing.kind === 'rows') return { svg: rows(drawing.rows, accent), legend: [] };
  const { kind, unit, series, points } = drawing;
  if (kind === 'lines') {
    const colors = [accent, MIDDLE];
    return { svg: lines(points, unit, colors), legend: legendOf(series, colors) };
  }
  const fills = fillsOf(series.length, accent);
  return { svg: columns(points, unit, fills), legend: legendOf(series, fills) };
}

const legendOf = (series: readonly string[], colors: readonly string[]) =>
  series.length < 2 ? [] : series.map((name, at) => ({ color: colors[at] ?? MIDDLE, name }));

const sum = (values: ChartPoint['values']): number =>
  values.reduce<number>((total, value) => total + (value ?? 0), 0);

/** The scale of amounts, its lines and their labels. */
export function valueAxis(most: number, unit: ChartUnit, height = HEIGHT) {
  const least = unit === 'count' ? 4 : 0.01;
  const y = scaleLinear([0, Math.max(most, least)], [height - MARGIN.bottom, MARGIN.top]).nice(4);
  const dollars = most < 4 ? '$,.2f' : '$,.0f';
  const format = y.tickFormat(4, unit === 'dollars' ? dollars : ',.0f');
  const grid = y
    .ticks(4)
    .flatMap((tick) => [
      `<line x1="${MARGIN.left}" x2="${CHART_WIDTH - MARGIN.right}" y1="${at(y(tick))}" y2="${at(y(tick))}" stroke="${tick === 0 ? CHART_MUTED : GRID}" stroke-width="${tick === 0 ? 1 : 0.8}"/>`,
      `<text x="${MARGIN.left - 10}" y="${at(y(tick) + 4)}" text-anchor="end" fill="${CHART_MUTED}">${format(tick)}</text>`,
    ]);
  return { y, grid };
}

const label = (x: number, text: string, anchor = 'middle', height = HEIGHT): string =>
  `<text x="${at(x)}" y="${height - 8}" text-anchor="${anchor}" fill="${CHART_INK}">${escapeXml(text)}</text>`;

function columns(points: readonly ChartPoint[], unit: ChartUnit, fills: readonly string[]): string {
  const { y, grid } = valueAxis(Math.max(...points.map(({ values }) => sum(values))), unit);
  const x = scaleBand(
    points.map((_point, place) => String(place)),
    [MARGIN.left, CHART_WIDTH - MARGIN.right],
  )
    .paddingInner(0.28)
    .paddingOuter(points.length > 6 ? 0.2 : 0.5);
  const width = Math.min(x.bandwidth(), 56);
  const every = Math.ceil(points.length / LABELS_MAX);
  const bars = points.flatMap(({ values, label: name }, place) => {
    const left = (x(String(place)) ?? 0) + (x.bandwidth() - width) / 2;
    let below = 0;
    const drawn = values.map((value = 0, series) => {
      const [from, to] = [y(below), y(below + value)];
      below += value;
      return value <= 0
        ? ''
        : `<rect x="${at(left)}" y="${at(to)}" width="${at(width)}" height="${at(from - to)}" fill="${fills[series]}"/>`;
    });
    return [...drawn, ...(place % every === 0 ? [label(left + width / 2, name)] : [])];
  });
  return svgOf(HEIGHT, [...grid, ...bars]);
}

function lines(points: readonly ChartPoint[], unit: ChartUnit, colors: readonly string[]): string {
  const { y, grid } = valueAxis(
    Math.max(...points.flatMap(({ values }) => values.map((value = 0) => value))),
    unit,
  );
  const x = scalePoint(
    points.map((_point, place) => String(place)),
    [MARGIN.left + 8, CHART_WIDTH - MARGIN.right - 8],
  );
  const every = Math.max(1, Math.ceil(points.length / LABELS_MAX));
  const series = points[0]?.values.length ?? 0;
  const paths = Array.from({ length: series }, (_, one) => {
    const path = points.flatMap(({ values }, place) => {
      const value = values[one];
      return value === undefined ? [] : [`${at(x(String(place)) ?? 0)},${at(y(value))}`];
    });
    const dashes = one === 0 ? '' : ' stroke-dasharray="5 4"';
    return `<polyline points="${path.join(' ')}" fill="none" stroke="${colors[one]}" stroke-width="${one === 0 ? 2.6 : 1.6}" stroke-linejoin="round"${dashes}/>`;
  }).reverse();
  const labels = points.flatMap(({ label: name }, place) =>
    place % every === 0 ? [label(x(String(place)) ?? 0, name)] : [],
  );
  return svgOf(HEIGHT, [...grid, ...paths, ...labels]);
}

const ROW = 30;
const LABEL_WIDTH = 236;
const TEXT_WIDTH = 110;

function rows(bars: readonly { label: string; value: number; text: string }[], accent: string): string {
  const height = bars.length * ROW + 6;
  const x = scaleLinear(
    [0, Math.max(...bars.map(({ value }) => value), 0.01)],
    [0, CHART_WIDTH - LABEL_WIDTH - TEXT_WIDTH],
  );
  const drawn = bars.flatMap(({ label: name, value, text }, place) => {
    const top = place * ROW + 5;
    const end = LABEL_WIDTH + Math.max(x(value), 1.5);
    return [
      `<text x="${LABEL_WIDTH - 12}" y="${top + 15}" text-anchor="end" fill="${CHART_INK}">${escapeXml(name)}</text>`,
      `<rect x="${LABEL_WIDTH}" y="${top}" width="${at(end - LABEL_WIDTH)}" height="20" fill="${accent}"/>`,
      `<text x="${at(end + 8)}" y="${top + 15}" fill="${CHART_INK}">${escapeXml(text)}</text>`,
    ];
  });
  return svgOf(height, [
    `<line x1="${LABEL_WIDTH}" x2="${LABEL_WIDTH}" y1="0" y2="${height}" stroke="${CHART_MUTED}" stroke-width="1"/>`,
    ...drawn,
  ]);
}

export function svgOf(height: number, parts: readonly string[]): string {
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${CHART_WIDTH}" height="${height}" viewBox="0 0 ${CHART_WIDTH} ${height}" font-family="Inter" font-size="12">`,
    ...parts,
    '</svg>',
  ].join('');
}

export const at = (value: number): string => String(Math.round(value * 100) / 100);

export const escapeXml = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
