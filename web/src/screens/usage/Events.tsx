import { useState } from 'react';
import { Link, useSearchParams } from 'wouter';
import { query } from '../../api/client';
import { useFilter, useSetFilters, withQuery } from '../../app/filters';
import { count, time } from '../../app/format';
import { providerName } from '../../app/providers';
import { type Column, DataTable } from '../../parts/DataTable';
import { Button, ButtonLink, DownloadLink } from '../../parts/forms/Button';
import { TextField } from '../../parts/forms/Fields';
import { ClearFilters, ProviderFilter } from '../../parts/forms/Filters';
import { Modal } from '../../parts/forms/Modal';
import { Period, usePeriod } from '../../parts/forms/Period';
import { Money } from '../../parts/Money';
import { Chip, Page } from '../../parts/Page';
import { PAGE_ROWS } from '../../parts/Pager';
import { Empty, ErrorState, Loading } from '../../parts/States';
import { EventDetail } from './EventDetail';

const TEXTS = [
  ['model', 'Model'],
  ['team_id', 'Team'],
  ['feature', 'Feature'],
  ['session_id', 'Session'],
  ['project_id', 'Project'],
] as const;

/** Calls one by one. A call opens in a drawer; its address opens it alone. */
export default function Events() {
  const [params, setParams] = useSearchParams();
  const setFilters = useSetFilters();
  const { from, to } = usePeriod();
  const [cursor, setCursor] = useFilter<string>('cursor', '');
  const [provider, setProvider] = useFilter<string>('provider', '');
  const open = params.get('event');
  const filters = {
    provider: provider || undefined,
    ...Object.fromEntries(TEXTS.map(([name]) => [name, params.get(name) || undefined])),
  };
  const events = query.useQuery('get', '/api/v1/events', {
    params: { query: { ...filters, since: from, until: to, limit: PAGE_ROWS, cursor: cursor || undefined } },
  });
  const data = events.data;
  const isFiltered = Object.values(filters).some(Boolean);
  const clear = () =>
    setFilters({ provider: undefined, ...Object.fromEntries(TEXTS.map(([name]) => [name, undefined])) });
  const show = (id: string | undefined) =>
    setParams((before) => {
      const after = new URLSearchParams(before);
      if (id) after.set('event', id);
      else after.delete('event');
      return after;
    });
  type Row = NonNullable<typeof data>['events'][number];
  const columns: Column<Row>[] = [
    { id: 'time', head: 'Time (UTC)', cell: (row) => time(row.timestamp) },
    { id: 'model', head: 'Model', cell: (row) => row.model },
    {
      id: 'cost',
      head: 'Cost',
      isNumber: true,
      cell: (row) => <Money usd={row.cost_source === 'unpriced' ? null : row.cost_usd} />,
    },
    { id: 'provider', head: 'Provider', cell: (row) => providerName(row.provider) },
    { id: 'team', head: 'Team', cell: (row) => row.team_id ?? '–' },
    { id: 'feature', head: 'Feature', cell: (row) => row.feature ?? '–' },
    {
      id: 'input',
      head: 'Input tokens',
      isNumber: true,
      cell: (row) => count(row.input_tokens + row.cache_read + row.cache_creation),
    },
    { id: 'output', head: 'Output tokens', isNumber: true, cell: (row) => count(row.output_tokens) },
    {
      id: 'marks',
      head: 'Marks',
      cell: (row) => (
        <>
          {row.is_batch && <Chip>batch</Chip>} {row.status !== 'ok' && <Chip kind="warn">{row.status}</Chip>}{' '}
          {row.cost_source === 'unpriced' && <Chip kind="warn">no price</Chip>}
        </>
      ),
    },
  ];
  return (
    <Page
      title="Events"
      lead="Calls as they were observed, newest first. Open one for its tokens and the sum behind its cost."
      actions={
        <DownloadLink href={withQuery('/api/v1/events/export', { start: from, end: to, format: 'jsonl' })}>
          Export all of these days
        </DownloadLink>
      }
      filters={
        <>
          <Period />
          <ProviderFilter value={provider} onChange={setProvider} />
          {TEXTS.map(([name, label]) => (
            <TextFilter key={`${name} ${params.get(name) ?? ''}`} name={name} label={label} />
          ))}
          {isFiltered && <ClearFilters onPress={clear} />}
        </>
      }
    >
      {events.isPending ? (
        <Loading rows={10} />
      ) : events.error ? (
        <ErrorState error={events.error} retry={() => void events.refetch()} />
      ) : data?.events.length ? (
        <DataTable
          caption="Calls"
          csv={withQuery('/api/v1/events', { ...filters, since: from, until: to, format: 'csv' })}
          columns={columns}
          rows={data.events}
          rowKey={({ id }) => id}
          onOpen={({ id }) => show(id)}
          rowLabel={(row) => `Open the call of ${time(row.timestamp)}, ${row.model}`}
          selectedKey={open ?? undefined}
          more={
            <>
              {cursor && <Button onPress={() => setCursor('')}>Newest</Button>}
              {data.next_cursor && <Button onPress={() => setCursor(data.next_cursor ?? '')}>Older</Button>}
            </>
          }
        />
      ) : isFiltered ? (
        <Empty title="No call matches the filters">
          <Button onPress={clear}>Clear filters</Button>
        </Empty>
      ) : (
        <Empty title="No call in these days">
          <p>
            Calls show here seconds after your application sends them. Choose other days, or send a first
            call.
          </p>
          <ButtonLink href="/first-call">Send a first call</ButtonLink>
        </Empty>
      )}
      <Modal title="Call" side isOpen={open !== null} onClose={() => show(undefined)}>
        {open && (
          <>
            <p>
              <Link href={`/events/${open}`}>
                <code>{open}</code>
              </Link>
            </p>
            <EventDetail id={open} />
          </>
        )}
      </Modal>
    </Page>
  );
}

/** A filter by an exact text; it takes effect with Enter or when the field is left. */
function TextFilter({ name, label }: { name: string; label: string }) {
  const [value, setValue] = useFilter<string>(name, '');
  const [text, setText] = useState(value);
  const apply = () => text.trim() !== value && setValue(text.trim());
  return (
    <TextField
      label={label}
      value={text}
      onChange={setText}
      onBlur={apply}
      onKeyDown={(event) => event.key === 'Enter' && apply()}
      placeholder="any"
    />
  );
}
