import { useCallback, useEffect, useMemo, useRef, useState } from 'react';
import { query } from '../../../api/client';
import { useFilter, useSetFilters, withQuery } from '../../../app/filters';
import { count } from '../../../app/format';
import { providerName } from '../../../app/providers';
import { Button, ButtonLink, DownloadLink } from '../../../parts/forms/Button';
import { ClearFilters, FilterSelect } from '../../../parts/forms/Filters';
import { addDays, Period, usePeriod } from '../../../parts/forms/Period';
import { Segments } from '../../../parts/forms/Segments';
import { useKey } from '../../../parts/forms/useKey';
import { Card, Page } from '../../../parts/Page';
import { Empty, ErrorState, Loading, Notice } from '../../../parts/States';
import { BucketPanel } from './BucketPanel';
import { BucketTable } from './BucketTable';
import { Swatch } from './CellMark';
import { type Bucket, gridOf, LOOK, type Look, type Row } from './cells';
import css from './Gaps.module.css';
import { Heatmap } from './Heatmap';
import { MatchAgain } from './MatchAgain';
import { Timeline } from './Timeline';

const PATH = '/api/v1/reconciliation/gap-explorer';
const BUCKETS_MAX = 10_000;
const CELL_MIN = 10;
const CELL_MAX = 40;
const LABELS_WIDTH = 240;

type Provider = 'openai' | 'anthropic' | 'aws_bedrock' | 'azure_openai';
const PROVIDERS: readonly Provider[] = ['openai', 'anthropic', 'aws_bedrock', 'azure_openai'];

/** Differences of bills and calls: a heatmap of models and days, the dollars of both sides below, facts in a panel. */
export default function GapExplorer() {
  const setFilters = useSetFilters();
  const days = usePeriod('90d');
  // The API answers for the last 7, 30 or 90 days; other days are cut out of the 90.
  const period = days.name === 'custom' ? '90d' : days.name;
  const [provider, setProvider] = useFilter<string>('provider', '');
  const [flagged, setFlagged] = useFilter<'' | '1'>('flagged', '');
  const [view, setView] = useFilter<'map' | 'table'>('view', 'map');
  const [cell, setCell] = useFilter<string>('cell', '');
  const filters = {
    period,
    provider: (provider || undefined) as Provider | undefined,
    flagged: flagged || undefined,
  };
  const gaps = query.useQuery('get', PATH, { params: { query: { ...filters, limit: BUCKETS_MAX } } });
  const { name, from, to } = days;
  const shown = useMemo(() => {
    if (!gaps.data || name !== 'custom') return gaps.data;
    const rows = gaps.data.gaps.filter(({ bucket }) => bucket >= from && bucket < addDays(to, 1));
    const flaggedRows = rows.filter((row) => row.flagged_gap);
    const span = { start: from, end: addDays(to, 1) };
    return { gaps: rows, period: span, total: rows.length, flagged: flaggedRows.length };
  }, [gaps.data, name, from, to]);
  const isCut = gaps.data !== undefined && gaps.data.period.start.slice(0, 10) > from;
  const grid = useMemo(() => shown && gridOf(shown.gaps, shown.period, period === '7d'), [shown, period]);
  const frame = useRef<HTMLDivElement>(null);
  const cellWidth = useCellWidth(frame, grid?.columns.length ?? 1);
  const open = useCallback((row: Row, column: string) => setCell(`${row.key}|${column}`), [setCell]);
  useKey('t', () => setView(view === 'map' ? 'table' : 'map'));
  const chosen = useMemo(() => {
    const column = cell.slice(cell.lastIndexOf('|') + 1);
    const row = grid?.rows.find((one) => `${one.key}|${column}` === cell);
    const bucket = row?.cells.get(column);
    return row && bucket ? { row, column, bucket } : undefined;
  }, [grid, cell]);
  const isFiltered = provider !== '' || flagged !== '';
  const clear = () => setFilters({ provider: undefined, flagged: undefined });
  return (
    <Page
      title="Gap explorer"
      lead="Where the bills and your calls differ, by model and day (UTC)."
      actions={<DownloadLink href={withQuery(PATH, { ...filters, format: 'csv' })}>CSV</DownloadLink>}
      filters={
        <>
          <Period fallback="90d" />
          <FilterSelect
            label="Provider"
            value={provider}
            onChange={setProvider}
            options={PROVIDERS.map((value) => ({ value: value as string, label: providerName(value) }))}
          />
          <FilterSelect
            label="Buckets"
            value={flagged}
            onChange={setFlagged}
            options={[{ value: '1', label: 'Flagged only' }]}
          />
          <Segments
            label="View"
            value={view}
            onChange={setView}
            options={[
              { value: 'map', label: 'Heatmap' },
              { value: 'table', label: 'Table' },
            ]}
          />
          {isFiltered && <ClearFilters onPress={clear} />}
        </>
      }
    >
      <MatchAgain period={period} provider={provider} />
      {isCut && name === 'custom' && (
        <Notice kind="warn">Days are compared for the last 90 days. Earlier days show no cells.</Notice>
      )}
      <div ref={frame}>
        {gaps.isPending ? (
          <Loading />
        ) : gaps.error ? (
          <ErrorState error={gaps.error} retry={() => void gaps.refetch()} />
        ) : !grid || grid.rows.length === 0 ? (
          isFiltered ? (
            <Empty title="No bucket matches">
              <Button onPress={clear}>Clear filters</Button>
            </Empty>
          ) : (
            <Empty title="Nothing is compared yet">
              <p>
                This screen will show each day of each model, where the bill and your calls agree and where
                they do not. It needs a bill: connect a provider, or upload an invoice.
              </p>
              <ButtonLink href="/connections" kind="primary">
                Connect a provider
              </ButtonLink>
            </Empty>
          )
        ) : view === 'table' ? (
          <BucketTable
            buckets={shown?.gaps ?? []}
            onOpen={(bucket) => setCell(keyOf(bucket, period === '7d'))}
          />
        ) : (
          <div style={{ display: 'grid', gap: 20 }} onScrollCapture={scrollTogether}>
            <Card
              title={`${count(shown?.flagged ?? 0)} flagged of ${count(shown?.total ?? 0)} buckets`}
              aside={<Legend />}
            >
              <Heatmap
                key={`${from} ${to} ${provider}`}
                grid={grid}
                cellWidth={cellWidth}
                startKey={cell}
                onOpen={open}
              />
            </Card>
            <Card
              title={`Billed and observed: ${chosen ? chosen.row.model : 'all rows'}`}
              aside={
                <ul className={css.legend} aria-label="Lines">
                  <li>
                    <LineSwatch name="billed" /> Billed
                  </li>
                  <li>
                    <LineSwatch name="observed" /> Observed
                  </li>
                  <li>Shade: every second {chosen ? 'invoice period' : 'month'}</li>
                </ul>
              }
            >
              <Timeline grid={grid} row={chosen?.row} cellWidth={cellWidth} />
            </Card>
          </div>
        )}
      </div>
      {chosen && <BucketPanel bucket={chosen.bucket} column={chosen.column} onClose={() => setCell('')} />}
    </Page>
  );
}

/** The heatmap and the timeline show the same days. */
function scrollTogether({ currentTarget, target }: React.UIEvent<HTMLElement>) {
  const { scrollLeft } = target as HTMLElement;
  for (const one of currentTarget.querySelectorAll('[data-days]'))
    if (one !== target && one.scrollLeft !== scrollLeft) one.scrollLeft = scrollLeft;
}

const keyOf = (bucket: Bucket, isHourly: boolean) =>
  `${bucket.provider}|${bucket.provider_account_id}|${bucket.model}|${bucket.bucket.slice(0, isHourly ? 13 : 10)}`;

/** Cells fill the width of the screen, within limits; wider maps scroll. */
function useCellWidth(frame: React.RefObject<HTMLDivElement | null>, columns: number): number {
  const [width, setWidth] = useState(0);
  useEffect(() => {
    if (!frame.current) return;
    const observer = new ResizeObserver(([entry]) => entry && setWidth(entry.contentRect.width));
    observer.observe(frame.current);
    return () => observer.disconnect();
  }, [frame]);
  return Math.max(CELL_MIN, Math.min(CELL_MAX, Math.floor((width - LABELS_WIDTH - 2) / columns)));
}

const LOOKS: readonly Look[] = ['matched', 'partial', 'unmatched', 'aside', 'provisional'];

function Legend() {
  return (
    <ul className={css.legend} aria-label="Legend">
      {LOOKS.map((look) => (
        <li key={look}>
          <Swatch look={look} /> {LOOK[look]}
        </li>
      ))}
      <li>
        <Swatch look="flagged" /> Flagged
      </li>
    </ul>
  );
}

function LineSwatch({ name }: { name: 'billed' | 'observed' }) {
  return (
    <svg width={24} height={12} aria-hidden="true">
      <path className={`${css.step} ${css[name]}`} d="M0 6H24" />
    </svg>
  );
}
