import { useMemo } from 'react';
import { type Decimal, usd } from '../../../app/format';
import { exactSum } from '../../../parts/exactSum';
import type { Bucket, Grid, Row } from './cells';
import css from './Gaps.module.css';
import { Axis } from './Heatmap';

const HEIGHT = 160;
const TOP = 24;

/** Billed amounts and costs of the calls, as two steps over the columns. Periods of invoices alternate in shade. */
export function Timeline({ grid, row, cellWidth }: { grid: Grid; row: Row | undefined; cellWidth: number }) {
  const points = useMemo(() => pointsOf(grid, row), [grid, row]);
  const width = grid.columns.length * cellWidth;
  const most = Math.max(
    ...points.flatMap((one) => [Number(one.billed ?? 0), Number(one.observed ?? 0)]),
    0.01,
  );
  const y = (value: Decimal) => TOP + (HEIGHT - TOP) * (1 - Number(value) / most);
  const path = (side: 'billed' | 'observed') =>
    points
      .map((one, at) => {
        const value = one[side];
        if (value === null) return '';
        const before = points[at - 1]?.[side] ?? null;
        return `${before === null ? 'M' : 'L'}${at * cellWidth} ${y(value)}H${(at + 1) * cellWidth}`;
      })
      .join('');
  return (
    <div className={css.frame}>
      <div className={css.values} aria-hidden="true">
        {[most, most / 2, 0].map((value) => (
          <span key={value} style={{ top: y(value) }}>
            {usd(value)}
          </span>
        ))}
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls has to be reached by keyboard */}
      <section className={css.scroll} aria-label="Billed and observed" tabIndex={0} data-days>
        <svg
          className={css.svg}
          width={width}
          height={HEIGHT + 2}
          role="img"
          aria-label={`Billed and observed dollars of ${row ? row.model : 'all rows'} by day, at most ${usd(most)}. The table has the same data.`}
        >
          {shadesOf(points).map((shade) => (
            <rect
              key={shade.from}
              className={css.shade}
              x={shade.from * cellWidth}
              y={TOP}
              width={(shade.to - shade.from) * cellWidth}
              height={HEIGHT - TOP}
            />
          ))}
          {[0, most / 2, most].map((value) => (
            <line key={value} className={css.gridline} x1={0} x2={width} y1={y(value)} y2={y(value)} />
          ))}
          <Axis columns={grid.columns} cellWidth={cellWidth} />
          <path className={`${css.step} ${css.billed}`} d={path('billed')} />
          <path className={`${css.step} ${css.observed}`} d={path('observed')} />
        </svg>
      </section>
    </div>
  );
}

interface Point {
  billed: string | null;
  observed: string | null;
  /** Start of the invoice period of the row, or the month over all rows; null where the column has no bucket. */
  invoice: string | null;
}

function pointsOf(grid: Grid, row: Row | undefined): Point[] {
  const rows = row ? [row] : grid.rows;
  return grid.columns.map((column) => {
    const buckets = rows.flatMap(({ cells }): Bucket[] => {
      const bucket = cells.get(column);
      return bucket ? [bucket] : [];
    });
    const [first] = buckets;
    if (!first) return { billed: null, observed: null, invoice: null };
    return {
      billed: exactSum(buckets.map((one) => one.provider_cost_usd)),
      observed: exactSum(buckets.map((one) => one.our_cost_usd)),
      invoice: row ? first.invoice_period_start : column.slice(0, 7),
    };
  });
}

/** Every second period of an invoice. */
function shadesOf(points: readonly Point[]): { from: number; to: number }[] {
  const spans: { start: string; from: number; to: number }[] = [];
  for (const [at, { invoice }] of points.entries()) {
    const last = spans.at(-1);
    if (invoice === null) continue;
    if (last?.start === invoice) last.to = at + 1;
    else spans.push({ start: invoice, from: at, to: at + 1 });
  }
  return spans.filter((_, at) => at % 2 === 0);
}
