/**
 * Draws the reliability curve as SVG: predicted against true shares. It has its own light panel, so that it is
 * legible on light and dark backgrounds.
 */
import type { ReliabilityBin } from './calibration.js';

const WIDTH = 920;
const HEIGHT = 424;
const TOP = 74;
const SIZE = 290;
const COUNTS = { left: 776, width: 116 };
const INK = '#1f2933';
const FAINT = '#9aa5b1';
const GRID = '#dde3ea';
const DOT = '#0b5fa5';

/** A square of the plane of probabilities, from `low` to 1 on both axes; `left` in pixels. */
interface Panel {
  left: number;
  low: number;
  title: string;
}

/** Most predictions exceed 0.9, where the dots of the whole square would overlap. */
const PANELS: readonly Panel[] = [
  { left: 66, low: 0, title: 'all' },
  { left: 412, low: 0.9, title: 'from 0.9 on' },
];
const STEPS = 5;

const n = (value: number) => value.toFixed(1);
const x = ({ left, low }: Panel, probability: number) => left + ((probability - low) / (1 - low)) * SIZE;
const y = ({ low }: Panel, share: number) => TOP + (1 - (share - low) / (1 - low)) * SIZE;

function text(at: { x: number; y: number }, content: string, more = ''): string {
  return `<text x="${n(at.x)}" y="${n(at.y)}" fill="${INK}" ${more}>${content}</text>`;
}

/**
 * The plot as a whole file. Dots are bins of equal counts with the 95 % interval of the share for the number of
 * days (Wilson 1927); the table beside it lists the counts.
 */
export function reliabilityPlot(bins: readonly ReliabilityBin[], error: number, title: string): string {
  const count = bins.reduce((sum, bin) => sum + bin.count, 0);
  const caption = `${count} finding-days, expected calibration error ${error.toFixed(4)}`;
  const [first] = PANELS;
  return `${[
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" width="${WIDTH}" height="${HEIGHT}" role="img" aria-labelledby="title" font-family="system-ui, sans-serif" font-size="13">`,
    `<title id="title">${title}: ${caption}</title>`,
    `<rect x="0.5" y="0.5" width="${WIDTH - 1}" height="${HEIGHT - 1}" rx="8" fill="#ffffff" stroke="${GRID}"/>`,
    text({ x: first?.left ?? 0, y: 28 }, title, 'font-weight="600" font-size="15"'),
    text({ x: first?.left ?? 0, y: 48 }, caption),
    ...PANELS.flatMap((panel) => [...axes(panel), ...dots(panel, bins)]),
    ...countTable(bins),
    '</svg>',
  ].join('\n')}\n`;
}

function axes(panel: Panel): string[] {
  const ticks = Array.from({ length: STEPS + 1 }, (_, at) => panel.low + ((1 - panel.low) * at) / STEPS);
  const digits = panel.low > 0 ? 2 : 1;
  const edge = (tick: number) => `${n(x(panel, tick))}`;
  const lines = ticks.flatMap((tick) => [
    `<line x1="${edge(tick)}" y1="${n(y(panel, panel.low))}" x2="${edge(tick)}" y2="${n(y(panel, 1))}" stroke="${GRID}"/>`,
    `<line x1="${n(panel.left)}" y1="${n(y(panel, tick))}" x2="${n(panel.left + SIZE)}" y2="${n(y(panel, tick))}" stroke="${GRID}"/>`,
    text({ x: x(panel, tick), y: TOP + SIZE + 20 }, tick.toFixed(digits), 'text-anchor="middle"'),
    text({ x: panel.left - 8, y: y(panel, tick) + 4 }, tick.toFixed(digits), 'text-anchor="end"'),
  ]);
  const middle = TOP + SIZE / 2;
  const turned = panel.left - 46;
  const isFirst = panel === PANELS[0];
  return [
    ...lines,
    `<line x1="${n(panel.left)}" y1="${n(TOP + SIZE)}" x2="${n(panel.left + SIZE)}" y2="${n(TOP)}" stroke="${FAINT}" stroke-dasharray="5 5"/>`,
    text(
      { x: panel.left + SIZE / 2, y: TOP + SIZE + 44 },
      `probability that was said, ${panel.title}`,
      'text-anchor="middle"',
    ),
    ...(isFirst
      ? [
          text(
            { x: turned, y: middle },
            'share that was true',
            `text-anchor="middle" transform="rotate(-90 ${n(turned)} ${n(middle)})"`,
          ),
        ]
      : []),
  ];
}

function dots(panel: Panel, bins: readonly ReliabilityBin[]): string[] {
  const shown = bins.filter((bin) => bin.said >= panel.low && bin.true >= panel.low);
  const path = shown.map((bin) => `${n(x(panel, bin.said))},${n(y(panel, bin.true))}`).join(' ');
  return [
    ...shown.map((bin) => {
      const [low, high] = wilson(bin.true, bin.count);
      const at = n(x(panel, bin.said));
      return `<line x1="${at}" y1="${n(y(panel, Math.max(low, panel.low)))}" x2="${at}" y2="${n(y(panel, high))}" stroke="${DOT}" stroke-opacity="0.45" stroke-width="2"/>`;
    }),
    `<polyline points="${path}" fill="none" stroke="${DOT}" stroke-width="1.5"/>`,
    ...shown.map(
      (bin) =>
        `<circle cx="${n(x(panel, bin.said))}" cy="${n(y(panel, bin.true))}" r="4" fill="${DOT}" stroke="#ffffff"/>`,
    ),
  ];
}

const Z = 1.96;

/** The interval of a share over `count` cases (Wilson 1927). */
function wilson(share: number, count: number): readonly [low: number, high: number] {
  const z2 = Z * Z;
  const middle = (share + z2 / (2 * count)) / (1 + z2 / count);
  const half = (Z / (1 + z2 / count)) * Math.sqrt((share * (1 - share)) / count + z2 / (4 * count * count));
  return [Math.max(0, middle - half), Math.min(1, middle + half)];
}

function countTable(bins: readonly ReliabilityBin[]): string[] {
  const { left, width } = COUNTS;
  const rows = ['said', 'true', 'days'].map((word, column) =>
    text({ x: left + (column * width) / 2, y: TOP + 4 }, word, 'text-anchor="end" font-weight="600"'),
  );
  bins.forEach((bin, index) => {
    const cells = [bin.said.toFixed(3), bin.true.toFixed(3), String(bin.count)];
    cells.forEach((cell, column) => {
      const at = { x: left + (column * width) / 2, y: TOP + 30 + index * 24 };
      rows.push(text(at, cell, 'text-anchor="end"'));
    });
  });
  return rows;
}
