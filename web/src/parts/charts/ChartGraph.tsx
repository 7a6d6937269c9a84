import { useId } from 'react';
import {
  Area,
  Bar,
  CartesianGrid,
  ComposedChart,
  type DotItemDotProps,
  Line,
  ResponsiveContainer,
  Tooltip,
  XAxis,
  YAxis,
} from 'recharts';
import { useLocation } from 'wouter';
import { compact, count, usd } from '../../app/format';
import { type ChartSeries, type ChartUnit, markAt } from './Chart';
import css from './Chart.module.css';
import { FillPattern, Swatch, seriesColor, seriesDash } from './chartMarks';

interface Point {
  x: string;
  row: unknown;
  values: (number | null)[];
}

const TICK = { fill: 'var(--muted)', fontSize: 12 };

/** The drawn part of a chart; apart so that its library loads only with the first chart. */
export default function ChartGraph({
  title,
  rows,
  x,
  xShort,
  series,
  unit,
  rowHref,
}: {
  title: string;
  rows: readonly unknown[];
  x: (row: unknown) => string;
  xShort?: (value: string) => string;
  series: readonly ChartSeries<unknown>[];
  unit: ChartUnit;
  rowHref?: (row: unknown) => string;
}) {
  const [, go] = useLocation();
  const id = `fill${useId().replace(/[^\w]/g, '')}`;
  const points: Point[] = rows.map((row) => ({
    x: x(row),
    row,
    values: series.map((one) => {
      const value = one.value(row);
      return value === null || value === undefined ? null : Number(value);
    }),
  }));
  const axis = (value: number) => (unit === 'usd' ? `$${compact(value)}` : compact(value));
  return (
    <ResponsiveContainer width="100%" height="100%">
      <ComposedChart
        data={points}
        title={title}
        margin={{ top: 8, right: 24, bottom: 0, left: 0 }}
        className={rowHref ? css.opens : undefined}
        onClick={(state) => {
          const point = points[Number(state.activeIndex)];
          if (rowHref && point) go(rowHref(point.row));
        }}
      >
        <defs>
          {series.map((one, at) => (
            <FillPattern key={one.id} id={`${id}${at}`} at={at} mark={markAt(series, at)} color={one.color} />
          ))}
        </defs>
        <CartesianGrid vertical={false} stroke="var(--line)" />
        <XAxis
          dataKey="x"
          tickFormatter={xShort}
          tick={TICK}
          tickLine={false}
          axisLine={{ stroke: 'var(--line-strong)' }}
          minTickGap={28}
        />
        <YAxis tickFormatter={axis} tick={TICK} tickLine={false} axisLine={false} width={56} />
        <Tooltip
          isAnimationActive={false}
          cursor={{ fill: 'var(--sunken)', stroke: 'var(--line-strong)' }}
          content={({ active, label }) => {
            const point = active ? points.find((one) => one.x === label) : undefined;
            return point ? <Tip point={point} series={series} unit={unit} /> : null;
          }}
        />
        {series.map((one, at) => {
          const shared = {
            name: one.name,
            dataKey: (point: Point) => point.values[at] ?? null,
            isAnimationActive: false,
            stroke: seriesColor(at, one.color),
          };
          const dot = ({ key, cx, cy, index }: DotItemDotProps) => (
            <g key={key}>
              {isAlone(points, index, at) && <circle cx={cx} cy={cy} r={4} fill={shared.stroke} />}
            </g>
          );
          if (one.kind === 'bar')
            return (
              <Bar
                key={one.id}
                {...shared}
                stackId={one.stack}
                fill={`url(#${id}${at})`}
                strokeWidth={one.color === 'ghost' ? 1 : 0}
                maxBarSize={36}
              />
            );
          if (one.kind === 'area')
            return (
              <Area
                key={one.id}
                {...shared}
                dot={dot}
                type="linear"
                stackId={one.stack}
                fill={`url(#${id}${at})`}
                fillOpacity={0.75}
                strokeWidth={1.5}
              />
            );
          return (
            <Line
              key={one.id}
              {...shared}
              dot={dot}
              type="linear"
              strokeWidth={one.color === 'ghost' ? 1.5 : 2.5}
              strokeDasharray={seriesDash(markAt(series, at), one.color)}
            />
          );
        })}
      </ComposedChart>
    </ResponsiveContainer>
  );
}

/** Whether a series has a value at a point and none beside it, to which a line could be drawn. */
function isAlone(points: readonly Point[], index: number, at: number): boolean {
  const [before, own, after] = [-1, 0, 1].map((step) => points[index + step]?.values[at] ?? null);
  return before === null && own !== null && after === null;
}

function Tip({
  point,
  series,
  unit,
}: {
  point: Point;
  series: readonly ChartSeries<unknown>[];
  unit: ChartUnit;
}) {
  return (
    <div className={css.tip}>
      <strong>{point.x}</strong>
      <table>
        <tbody>
          {series.map((one, at) => {
            const value = point.values[at];
            return (
              <tr key={one.id}>
                <td>
                  <Swatch kind={one.kind} at={at} mark={markAt(series, at)} color={one.color} /> {one.name}
                </td>
                <td>
                  {value === null || value === undefined ? '–' : unit === 'usd' ? usd(value) : count(value)}
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}
