/**
 * The reliability curve as SVG: what was said against what was true. A light panel of its own keeps it legible on light and
 * dark backgrounds.
 */
import type { ReliabilityBin } from './calibration.js';

const WIDTH = 640;
const HEIGHT = 460;
const PLOT = { left: 76, top: 56, size: 330 };
const COUNTS = { left: 472, width: 136 };
const TICKS = [0, 0.2, 0.4, 0.6, 0.8, 1];
const INK = '#1f2933';
const FAINT = '#9aa5b1';
const GRID = '#dde3ea';
const DOT = '#0b5fa5';

const x = (probability: number) => PLOT.left + probability * PLOT.size;
const y = (share: number) => PLOT.top + (1 - share) * PLOT.size;
const n = (value: number) => value.toFixed(1);

function text(at: { x: number; y: number }, content: string, more = ''): string {
  return `<text x="${n(at.x)}" y="${n(at.y)}" fill="${INK}" ${more}>${content}</text>`;
}

/** The plot as a whole file. Dots are bins of equal counts; the table beside says how many each holds. */
export function reliabilityPlot(bins: readonly ReliabilityBin[], error: number, title: string): string {
  const count = bins.reduce((sum, bin) => sum + bin.count, 0);
  const points = bins.map((bin) => `${n(x(bin.said))},${n(y(bin.true))}`).join(' ');
  return `${[
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" width="${WIDTH}" height="${HEIGHT}" role="img" aria-labelledby="title" font-family="system-ui, sans-serif" font-size="13">`,
    `<title id="title">${title}: ${count} finding-days, expected calibration error ${error.toFixed(4)}</title>`,
    `<rect width="${WIDTH}" height="${HEIGHT}" rx="8" fill="#ffffff" stroke="${GRID}"/>`,
    text({ x: PLOT.left, y: 26 }, title, 'font-weight="600" font-size="15"'),
    text({ x: PLOT.left, y: 44 }, `${count} finding-days, expected calibration error ${error.toFixed(4)}`),
    ...axes(),
    `<line x1="${n(x(0))}" y1="${n(y(0))}" x2="${n(x(1))}" y2="${n(y(1))}" stroke="${FAINT}" stroke-dasharray="5 5"/>`,
    `<polyline points="${points}" fill="none" stroke="${DOT}" stroke-width="1.5"/>`,
    ...bins.map((bin) => `<circle cx="${n(x(bin.said))}" cy="${n(y(bin.true))}" r="4.5" fill="${DOT}"/>`),
    ...countTable(bins),
    '</svg>',
  ].join('\n')}\n`;
}

function axes(): string[] {
  const lines = TICKS.flatMap((tick) => [
    `<line x1="${n(x(tick))}" y1="${n(y(0))}" x2="${n(x(tick))}" y2="${n(y(1))}" stroke="${GRID}"/>`,
    `<line x1="${n(x(0))}" y1="${n(y(tick))}" x2="${n(x(1))}" y2="${n(y(tick))}" stroke="${GRID}"/>`,
    text({ x: x(tick), y: y(0) + 20 }, tick.toFixed(1), 'text-anchor="middle"'),
    text({ x: x(0) - 10, y: y(tick) + 4 }, tick.toFixed(1), 'text-anchor="end"'),
  ]);
  const middle = PLOT.top + PLOT.size / 2;
  return [
    ...lines,
    text({ x: x(0.5), y: y(0) + 44 }, 'probability that was said', 'text-anchor="middle"'),
    text(
      { x: 26, y: middle },
      'share that was true',
      `text-anchor="middle" transform="rotate(-90 26 ${n(middle)})"`,
    ),
  ];
}

function countTable(bins: readonly ReliabilityBin[]): string[] {
  const { left, width } = COUNTS;
  const rows = ['said', 'true', 'days'].map((word, column) =>
    text({ x: left + (column * width) / 2, y: PLOT.top + 10 }, word, 'text-anchor="end" font-weight="600"'),
  );
  bins.forEach((bin, index) => {
    const cells = [bin.said.toFixed(3), bin.true.toFixed(3), String(bin.count)];
    cells.forEach((cell, column) => {
      const at = { x: left + (column * width) / 2, y: PLOT.top + 34 + index * 22 };
      rows.push(text(at, cell, 'text-anchor="end"'));
    });
  });
  return rows;
}
