import { useId } from 'react';

type Color = number | 'ghost' | undefined;

/** The colour of the series at this place. */
export function seriesColor(at: number, color: Color): string {
  if (color === 'ghost') return 'var(--line-strong)';
  return `var(--chart-${(((color ?? at + 1) - 1) % 8) + 1})`;
}

/** Strokes over the colour of a filled series, so that neighbours differ without colour. Each tile is 8 by 8. */
const STROKES = [
  '',
  'M-2,2 l4,-4 M0,8 l8,-8 M6,10 l4,-4',
  'M0,4 h8',
  'M2,2 h1 M6,6 h1',
  'M4,0 v8',
  'M-2,6 l4,4 M0,0 l8,8 M6,-2 l4,4',
  'M0,4 h8 M4,0 v8',
  'M0,2 h8 M0,6 h8',
];
const DASHES = ['', '6 4', '2 3', '8 3 2 3', '12 4', '4 2 1 2', '1 4', '10 2'];

/** The dash of the line at this place. */
export const seriesDash = (mark: number, color: Color) =>
  color === 'ghost' ? '3 4' : (DASHES[mark % DASHES.length] ?? '');

/** The pattern of a filled series; use it as `url(#id)`. */
export function FillPattern({ id, at, mark, color }: { id: string; at: number; mark: number; color: Color }) {
  const fill = seriesColor(at, color);
  return (
    <pattern id={id} width={8} height={8} patternUnits="userSpaceOnUse">
      <rect width={8} height={8} fill={fill} fillOpacity={color === 'ghost' ? 0.35 : 1} />
      <path
        d={STROKES[mark % STROKES.length]}
        stroke="var(--surface)"
        strokeOpacity={0.55}
        strokeWidth={1.5}
      />
    </pattern>
  );
}

/** The mark of a series in a legend or a tooltip. */
export function Swatch({
  kind,
  at,
  mark,
  color,
}: {
  kind: 'bar' | 'line' | 'area';
  at: number;
  mark: number;
  color: Color;
}) {
  const id = `swatch${useId().replace(/[^\w]/g, '')}`;
  return (
    <svg width={16} height={12} aria-hidden="true">
      {kind === 'line' ? (
        <line
          x1={0}
          x2={16}
          y1={6}
          y2={6}
          stroke={seriesColor(at, color)}
          strokeWidth={2.5}
          strokeDasharray={seriesDash(mark, color)}
        />
      ) : (
        <>
          <defs>
            <FillPattern id={id} at={at} mark={mark} color={color} />
          </defs>
          <rect x={1} width={12} height={12} rx={2} fill={`url(#${id})`} />
        </>
      )}
    </svg>
  );
}
