import { type ReactNode, Suspense, useId, useState } from 'react';
import { Link } from 'wouter';
import { count, type Decimal } from '../../app/format';
import { lazyPart } from '../../app/lazyPart';
import { type Column, DataTable } from '../DataTable';
import { Button } from '../forms/Button';
import { useKey } from '../forms/useKey';
import { Money } from '../Money';
import css from './Chart.module.css';
import { Swatch } from './chartMarks';

/** The library of charts is as large as the rest of the page: words and numbers come before it. */
const ChartGraph = lazyPart(() => import('./ChartGraph'), { canWait: true });

/** One series of a chart. Series of one kind with the same stack lie on each other. */
export interface ChartSeries<Row> {
  id: string;
  name: string;
  kind: 'bar' | 'line' | 'area';
  stack?: string;
  /** Null or undefined: no value; the chart leaves a gap and the table a dash. */
  value: (row: Row) => Decimal | null | undefined;
  /** Colour 1 to 8 of the tokens; by default the place in the list. "ghost" is a faint, dashed comparison. */
  color?: number | 'ghost';
  /** The foot of the series in the table, which must equal the sum of its rows. */
  foot?: ReactNode;
}

/** The place of a series among those that are drawn alike; it chooses the pattern or the dash. */
export const markAt = (series: readonly ChartSeries<never>[], at: number) =>
  series.slice(0, at).filter((one) => (one.kind === 'line') === (series[at]?.kind === 'line')).length;

export type ChartUnit = 'usd' | 'count';

/**
 * A chart with a legend, and the same rows as a table behind its "Table" button (key t). Series differ by pattern or dash
 * besides their colour.
 */
export function Chart<Row>({
  title,
  rows,
  xName,
  x,
  xShort,
  series,
  unit,
  height = 260,
  rowHref,
  csv,
}: {
  title: string;
  rows: readonly Row[];
  /** Names the x axis, for example "Day (UTC)". */
  xName: string;
  x: (row: Row) => string;
  /** The label below the axis where the value is too long. */
  xShort?: (value: string) => string;
  series: readonly ChartSeries<Row>[];
  unit: ChartUnit;
  height?: number;
  /** The address of the rows behind one x value. */
  rowHref?: (row: Row) => string;
  csv?: string;
}) {
  const [isTable, setIsTable] = useState(false);
  const titleId = useId();
  useKey('t', () => setIsTable((before) => !before));
  const columns: Column<Row>[] = [
    {
      id: 'x',
      head: xName,
      cell: (row) => (rowHref ? <Link href={rowHref(row)}>{x(row)}</Link> : x(row)),
      foot: series.some((one) => one.foot !== undefined) ? `Sum of ${count(rows.length)} rows` : undefined,
    },
    ...series.map(
      (one): Column<Row> => ({
        id: one.id,
        head: one.name,
        isNumber: true,
        cell: (row) => <Value value={one.value(row)} unit={unit} />,
        foot: one.foot,
      }),
    ),
  ];
  return (
    <figure className={css.chart} aria-labelledby={titleId}>
      <div className={css.head}>
        <figcaption id={titleId} className={css.title}>
          {title}
        </figcaption>
        <ul className={css.legend} aria-label="Series">
          {series.map((one, at) => (
            <li key={one.id}>
              <Swatch kind={one.kind} at={at} mark={markAt(series, at)} color={one.color} /> {one.name}
            </li>
          ))}
        </ul>
        <div className={css.toggle}>
          <Button kind="quiet" onPress={() => setIsTable(!isTable)}>
            {isTable ? 'Chart' : 'Table'}
            <span className="visually-hidden"> of {title}</span>
          </Button>
        </div>
      </div>
      {isTable ? (
        <DataTable caption={title} columns={columns} rows={rows} rowKey={x} csv={csv} />
      ) : (
        <div style={{ height }}>
          <Suspense fallback={<div className={css.drawing} />}>
            <ChartGraph
              title={title}
              rows={rows as readonly unknown[]}
              x={x as (row: unknown) => string}
              xShort={xShort}
              series={series as readonly ChartSeries<unknown>[]}
              unit={unit}
              rowHref={rowHref as ((row: unknown) => string) | undefined}
            />
          </Suspense>
        </div>
      )}
    </figure>
  );
}

function Value({ value, unit }: { value: Decimal | null | undefined; unit: ChartUnit }) {
  if (unit === 'usd') return <Money usd={value} />;
  return value === null || value === undefined ? '–' : count(Number(value));
}
